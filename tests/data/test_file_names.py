"""Every public file name of the benchmark is read right, and generated files get the same kind of name."""

import pytest

from vcnef.data import parse_name, public_name

SMALL = {"1D": "1.e-8", "2D": "1e-08", "3D": "1e-08"}
PUBLIC = {
    **{f"1D_Advection_Sols_beta{v}": ("advection", {"beta": v}) for v in (0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0, 7.0)},
    **{
        f"1D_Burgers_Sols_Nu{v}": ("burgers", {"nu": v})
        for v in (0.001, 0.002, 0.004, 0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1.0, 2.0, 4.0)
    },
    **{f"1D_CFD_Rand_Eta{v}_Zeta{v}_periodic_Train": ("cns1d", {"eta": v, "zeta": v}) for v in (0.01, 0.1)},
    "1D_CFD_Rand_Eta1.e-8_Zeta1.e-8_periodic_Train": ("cns1d", {"eta": 1e-8, "zeta": 1e-8}),
    "1D_CFD_Rand_Eta1.e-8_Zeta1.e-8_trans_Train": ("cns1d", {"eta": 1e-8, "zeta": 1e-8}),
    "1D_CFD_Shock_Eta1.e-8_Zeta1.e-8_trans_Train": ("cns1d", {"eta": 1e-8, "zeta": 1e-8}),
    **{
        f"2D_CFD_Rand_M{mach}_Eta{v}_Zeta{v}_periodic_128_Train": ("cns2d", {"eta": v, "zeta": v, "mach": mach})
        for mach in (0.1, 1.0)
        for v in (0.01, 0.1)
    },
    **{
        f"2D_CFD_{kind}_M{mach}_Eta1e-08_Zeta1e-08_periodic_512_Train": (
            "cns2d",
            {"eta": 1e-8, "zeta": 1e-8, "mach": mach},
        )
        for kind in ("Rand", "Turb")
        for mach in (0.1, 1.0)
    },
    **{
        f"3D_CFD_{kind}_M1.0_Eta1e-08_Zeta1e-08_periodic_Train": ("cns3d", {"eta": 1e-8, "zeta": 1e-8, "mach": 1.0})
        for kind in ("Rand", "Turb")
    },
}


def test_the_table_is_the_whole_public_list():
    assert len(PUBLIC) == 8 + 12 + 5 + 4 + 4 + 2


@pytest.mark.parametrize("stem", PUBLIC)
def test_public_names(stem):
    problem, values = PUBLIC[stem]
    found = parse_name(stem)
    assert found.problem == problem
    assert dict(found.params) | ({"mach": found.mach} if found.mach else {}) == values
    assert found.periodic == ("_trans" not in stem)
    assert (found.initial or "") in stem


def test_the_order_of_the_merge_script_is_understood():
    found = parse_name("2D_CFD_Rand_Eta0.01_Zeta0.01_M0.1_periodic_Train")
    assert (found.mach, found.params) == (0.1, {"eta": 0.01, "zeta": 0.01})


@pytest.mark.parametrize("stem", ["data", "1D_Burgers_Sols_Nu", "1D_Burgers_Sols_Nu0x001", "2D_CFD_Rand_M0.1", ""])
def test_other_names_say_nothing(stem):
    assert parse_name(stem) is None


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("burgers", {"nu": 0.001}, {}, 1024), "1D_Burgers_Sols_Nu0.001.hdf5"),
        (("advection", {"beta": 1}, {}, 1024), "1D_Advection_Sols_beta1.0.hdf5"),
        (("cns1d", {"eta": 0.007, "zeta": 0.007}, {}, 1024), "1D_CFD_Rand_Eta0.007_Zeta0.007_periodic_Train.hdf5"),
        (("cns1d", {"eta": 1e-8, "zeta": 2.5e-8}, {}, 1024), "1D_CFD_Rand_Eta1.e-8_Zeta2.5e-8_periodic_Train.hdf5"),
        (
            ("cns2d", {"eta": 0.01, "zeta": 0.01}, {"mach": 0.1}, 128),
            "2D_CFD_Rand_M0.1_Eta0.01_Zeta0.01_periodic_128_Train.hdf5",
        ),
        (
            ("cns3d", {"eta": 1e-8, "zeta": 1e-8}, {"mach": 1}, 128),
            "3D_CFD_Rand_M1.0_Eta1e-08_Zeta1e-08_periodic_Train.hdf5",
        ),
        (("burgers", {"nu": (0.001, 1.0)}, {}, 1024), "1D_Burgers_Sols_Nu0.001to1.0.hdf5"),
        (("decay", {"rate": 2.0}, {}, 16), "decay_rate2.0.hdf5"),
    ],
)
def test_names_of_generated_files(arguments, name):
    assert public_name(*arguments) == name
    if "to" not in name and arguments[0] != "decay":
        assert dict(parse_name(name.removesuffix(".hdf5")).params) == {k: float(v) for k, v in arguments[1].items()}
