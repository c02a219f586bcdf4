"""Code that is generated on threads: the same as the caller's, errors in LLVM's words, and forks in the middle."""

import os

import pytest

from flambeau import _runtime
from flambeau.inductor.machine import llvm
from flambeau.testing import guard_pages

TEXT = """
define void @{name}(ptr %p, i64 %n) {{
  %x = load double, ptr %p
  %y = fmul double %x, {factor}.0
  store double %y, ptr %p
  ret void
}}
"""


@pytest.fixture(autouse=True)
def threads():
    if not llvm._threads():
        pytest.skip("this llvmlite, or a setting, has no threads")


def texts(n, begin=1):
    return [TEXT.format(name=f"f{i}", factor=i) for i in range(begin, begin + n)]


def test_the_code_is_that_of_the_caller():
    made = [(t, llvm.start(t)) for t in texts(40)]
    assert [llvm.finish(job, t) for t, job in made] == [llvm.compile_text(t) for t, _ in made]


def test_errors_are_raised_where_the_code_is_wanted():
    good, bad, worse = texts(1)[0], "define void @f( {", "define void @f() {\n  %x = add i32 1, 2\n  ret i32 %x\n}"
    jobs = [llvm.start(t) for t in (good, bad, worse)]
    assert llvm.finish(jobs[0], good)
    for job, text in zip(jobs[1:], (bad, worse)):
        with pytest.raises(RuntimeError):
            llvm.finish(job, text)
        with pytest.raises(RuntimeError):  # again
            llvm.finish(job, text)


def test_jobs_that_nobody_wants_are_dropped():
    for _ in range(5):
        for t in texts(20):
            llvm.start(t)
    t = texts(1, 99)[0]
    assert llvm.finish(llvm.start(t), t)


def forks_while_threads_work() -> None:
    jobs = [llvm.start(t) for t in texts(30)]
    child = os.fork()
    if child == 0:
        t = texts(1, 77)[0]
        good = llvm.finish(llvm.start(t), t) and all(map(llvm.finish, jobs, texts(30)))
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert all(map(llvm.finish, jobs, texts(30)))


def test_a_fork_finds_no_thread_at_work():
    # A worker of the whole suite may be too large to be forked.
    guard_pages.run_alone(__file__, "forks_while_threads_work()", 100)


def test_arguments_are_checked():
    with pytest.raises(TypeError):
        _runtime.emit_start("text")
    with pytest.raises(ValueError):
        _runtime.emit_finish(object())
    with pytest.raises(ValueError):
        _runtime.emit_configure((1,), (1,), "", "")
