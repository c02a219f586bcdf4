"""torchvision: models, transforms.v2 on images, boxes and masks, and what its Python part computes with boxes."""

import numpy as np
import torch
from harness import both


def _model(name, size=64, **options):
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None, num_classes=6, **options).eval()
    return model, (torch.randn(2, 3, size, size),)


def resnet18():
    return both(*_model("resnet18", 32))


def mobilenet_v3():
    return both(*_model("mobilenet_v3_small"))


def vit():
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=6).eval()
    return both(model, (torch.randn(2, 3, 32, 32),))


def squeezenet():
    return both(*_model("squeezenet1_1"))


def shufflenet():
    return both(*_model("shufflenet_v2_x0_5"))


def densenet():
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.DenseNet(8, (2, 2), 16, num_classes=6).eval()
    return both(model, (torch.randn(2, 3, 32, 32),))


def segmentation():
    """A fully convolutional network: a dict of two maps."""
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=4
    )
    out = model.eval()(torch.randn(1, 3, 64, 64))
    out["out"].mean().backward()
    return {"out": out["out"]}


def transforms():
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    image = tv_tensors.Image(torch.randint(0, 256, (3, 40, 48), dtype=torch.uint8))
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor([[4, 5, 20, 30], [10, 2, 44, 38]]), format="XYXY", canvas_size=(40, 48)
    )
    mask = tv_tensors.Mask(torch.randint(0, 2, (1, 40, 48), dtype=torch.uint8))
    steps = v2.Compose(
        [
            v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True),
            v2.RandomHorizontalFlip(1.0),
            v2.Pad(3),
            v2.CenterCrop(36),
            v2.Resize((24, 24), antialias=True),
            v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]),
        ]
    )
    out = steps({"image": image, "boxes": boxes, "mask": mask})
    assert isinstance(out["boxes"], tv_tensors.BoundingBoxes) and isinstance(out["image"], tv_tensors.Image)
    return {k: v.as_subclass(torch.Tensor).float() for k, v in out.items()}


def random_transforms():
    from torchvision.transforms import v2

    image = torch.rand(3, 32, 32)
    torch.manual_seed(3)
    steps = v2.Compose(
        [
            v2.RandomResizedCrop(20, antialias=True),
            v2.RandomErasing(1.0),
            v2.RandomRotation(20),
            v2.ColorJitter(0.4, 0.4),
        ]
    )
    return {
        "image": steps(image),
        "mixed": v2.MixUp(num_classes=4)(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))[1],
    }


def functional():
    from torchvision.transforms.v2 import functional as F

    image = torch.rand(3, 17, 21)
    return {
        "blur": F.gaussian_blur(image, [5, 5], [1.2, 1.2]),
        "affine": F.affine(image, 12.0, [2, 3], 0.9, [4.0, 1.0]),
        "perspective": F.perspective(image, [[0, 0], [20, 0], [20, 16], [0, 16]], [[1, 2], [18, 1], [19, 14], [2, 15]]),
        "grayscale": F.rgb_to_grayscale(image),
        "hue": F.adjust_hue(image, 0.2),
        "saturation": F.adjust_saturation(image, 1.7),
        "contrast": F.adjust_contrast(image, 0.6),
        "sharpness": F.adjust_sharpness(image, 1.4),
        "equalize": F.equalize((image * 255).to(torch.uint8)).float(),
        "autocontrast": F.autocontrast(image),
        "posterize": F.posterize((image * 255).to(torch.uint8), 3).float(),
        "elastic": F.elastic(image, torch.zeros(1, 17, 21, 2) + 0.05),
    }


def pil_images():
    from PIL import Image
    from torchvision import transforms

    picture = Image.fromarray(np.arange(30 * 20 * 3, dtype=np.uint8).reshape(30, 20, 3))
    steps = transforms.Compose([transforms.Resize(16), transforms.CenterCrop(12), transforms.ToTensor()])
    tensor = steps(picture)
    again = transforms.ToPILImage()(tensor)
    return {"tensor": tensor, "size": [float(n) for n in again.size]}


def boxes():
    from torchvision import ops

    a = torch.tensor([[0.0, 0, 10, 10], [5, 5, 15, 20], [3, 1, 4, 9]])
    b = torch.tensor([[1.0, 1, 9, 12], [4, 4, 14, 18], [2, 0, 6, 8]])
    return {
        "iou": ops.box_iou(a, b),
        "generalized": ops.generalized_box_iou(a, b),
        "area": ops.box_area(a),
        "converted": ops.box_convert(a, "xyxy", "cxcywh"),
        "focal": ops.sigmoid_focal_loss(torch.randn(4, 3), torch.rand(4, 3).round(), reduction="mean"),
        "giou loss": ops.generalized_box_iou_loss(a, b, reduction="sum"),
        "clipped": ops.clip_boxes_to_image(a, (8, 9)),
        "masks": ops.masks_to_boxes(torch.rand(2, 6, 7) > 0.5).float(),
    }


def layers():
    """Squeeze and excitation, stochastic depth, feature pyramid."""
    from collections import OrderedDict

    from torchvision import ops

    torch.manual_seed(0)
    pyramid = ops.FeaturePyramidNetwork([4, 8], 6)
    maps = pyramid(OrderedDict(a=torch.randn(1, 4, 16, 16), b=torch.randn(1, 8, 8, 8)))
    block = ops.SqueezeExcitation(4, 2)
    torch.manual_seed(1)
    return {
        **{k: v for k, v in maps.items()},
        "excited": block(torch.randn(2, 4, 5, 5)),
        "depth": ops.stochastic_depth(torch.ones(6, 2), 0.5, "row"),
    }


def utils():
    from torchvision import utils as u

    images = torch.rand(5, 3, 8, 8)
    drawn = u.draw_bounding_boxes((images[0] * 255).to(torch.uint8), torch.tensor([[1, 1, 6, 6]]), colors="red")
    return {"grid": u.make_grid(images, nrow=3, normalize=True), "drawn": drawn.float()}


def datasets():
    """FakeData through a DataLoader."""
    import torchvision

    data = torchvision.datasets.FakeData(6, (3, 8, 8), 4, transform=torchvision.transforms.ToTensor())
    loader = torch.utils.data.DataLoader(data, batch_size=3)
    return {f"batch {k}": x for k, (x, _) in enumerate(loader)}


def feature_extraction():
    """A model's inner maps, by symbolic tracing."""
    from torchvision.models.feature_extraction import create_feature_extractor

    model, (x,) = _model("resnet18", 32)
    return dict(create_feature_extractor(model, {"layer2": "a", "avgpool": "b"})(x))
