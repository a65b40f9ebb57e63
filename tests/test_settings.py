import pytest

from virt_steward.settings import BadSetting, chosen, console_settings, lease_times


def test_controllers_come_once_each_in_the_order_in_which_they_are_named() -> None:
    assert chosen(("advisor", "approver"), ("approver", "advisor", "approver")) == ("approver", "advisor")


def test_an_unknown_controller_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"no controller is called 'aprover'; there are: advisor, approver$"):
        chosen(("advisor", "approver"), ("advisor", "aprover"))


def test_a_lease_that_could_not_survive_one_missed_renewal_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"--lease-retry 6 s is too long for --lease-duration 15 s: .* use 2.5 s"):
        lease_times(15, 6)
    assert lease_times(15, 2).usable == 10


@pytest.mark.parametrize("address", ["0.0.0.0:8090", ":8090", "10.0.0.7:8090", "somewhere:8090"])
def test_a_console_beyond_loopback_needs_tls_in_front_of_it(address: str) -> None:
    with pytest.raises(BadSetting, match="--console-url https://HOST"):
        console_settings(address)
    served = console_settings(address, "https://console.example.com/", ("10.0.0.0/8",))
    assert served
    assert served.external_url == "https://console.example.com"


@pytest.mark.parametrize(
    "url", ["http://console.example.com", "https://console.example.com/path", "console", "https://"]
)
def test_the_address_of_a_console_is_an_origin_with_tls(url: str) -> None:
    with pytest.raises(BadSetting, match="write https://HOST"):
        console_settings("127.0.0.1:8090", url)


def test_a_console_can_be_turned_off_and_a_proxy_must_have_an_address() -> None:
    assert console_settings("0") is None
    with pytest.raises(BadSetting, match="--console-proxies"):
        console_settings("127.0.0.1:8090", "", ("the proxy",))
