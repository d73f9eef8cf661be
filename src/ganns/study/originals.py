"""The original files, at their authors' own addresses, and how to know that one is whole."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its exact name, the most bytes it may have, and its checksum where one is known.

    A .gz archive has one file, whatever its name.
    """

    name: str
    limit: int
    checksum: str | None = None


@dataclass(frozen=True)
class Source:
    """A file to download. Checksums are written "md5:…" or "sha256:…".

    Some archives are packed anew from time to time and have no lasting checksum; then those of the members count, or,
    where there are none either, that the values are what the dataset must hold.
    """

    url: str
    checksum: str | None = None
    members: tuple[Member, ...] = ()

    @property
    def file(self) -> str:
        """The name of the file, the last part of its address."""
        return PurePosixPath(urlsplit(self.url).path).name


_UCI = "https://archive.ics.uci.edu/static/public"
_FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
_AIRFOIL = "sha256:74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3"
_YACHT = "sha256:00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"

AIRFOIL = (Source(f"{_UCI}/291/airfoil+self+noise.zip", members=(Member("airfoil_self_noise.dat", 59_984, _AIRFOIL),)),)
YACHT = (
    Source(f"{_UCI}/243/yacht+hydrodynamics.zip", members=(Member("yacht_hydrodynamics.data", 11_487, _YACHT),)),
)  # fmt: skip
WINE = (
    Source(
        f"{_UCI}/186/wine+quality.zip",
        members=(
            Member("winequality-red.csv", 84_199, "md5:2daeecee174368f8a33b82c8cccae3a5"),
            Member("winequality-white.csv", 264_426, "md5:5d9ff0f7f716dace19e3ab4578775fd7"),
        ),
    ),
)
YEAR_PREDICTION_MSD = (
    Source(f"{_UCI}/203/yearpredictionmsd.zip", members=(Member("YearPredictionMSD.txt", 1 << 30),)),
)  # fmt: skip
CIFAR100 = (
    Source(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
        members=(
            Member("cifar-100-binary/train.bin", 50_000 * 3_074),
            Member("cifar-100-binary/test.bin", 10_000 * 3_074),
        ),
    ),
)


def _idx(name: str, size: int, checksum: str) -> Source:
    return Source(f"{_FASHION}/{name}.gz", checksum, members=(Member(name, size),))


FASHION_MNIST = (
    _idx("train-images-idx3-ubyte", 16 + 60_000 * 784, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    _idx("train-labels-idx1-ubyte", 8 + 60_000, "md5:25c81989df183df01b3e8a0aad5dffbe"),
    _idx("t10k-images-idx3-ubyte", 16 + 10_000 * 784, "md5:bef4ecab320f06d8554ea6380940ec79"),
    _idx("t10k-labels-idx1-ubyte", 8 + 10_000, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
)
TINY_IMAGENET = (
    Source("https://cs231n.stanford.edu/tiny-imagenet-200.zip", "md5:90528d7ca1a48142e341f4ef8d21d0de"),
)  # fmt: skip
