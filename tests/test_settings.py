import pytest

from virt_steward.cli.notify_flags import endpoints
from virt_steward.settings import BadSetting, check_endpoints, chosen, console_settings, lease_times, notify_endpoints


def test_chosen_keeps_order_without_duplicates() -> None:
    assert chosen(("advisor", "approver"), ("approver", "advisor", "approver")) == ("approver", "advisor")


def test_chosen_refuses_unknown_controller() -> None:
    with pytest.raises(BadSetting, match=r"unknown controller 'aprover'; choose from advisor, approver$"):
        chosen(("advisor", "approver"), ("advisor", "aprover"))


def test_lease_times_refuse_long_retry() -> None:
    with pytest.raises(BadSetting, match=r"--lease-retry 6 s is too long for --lease-duration 15 s: .* use 2.5 s"):
        lease_times(15, 6)
    assert lease_times(15, 2).usable == 10


def test_notify_can_be_given_more_than_once() -> None:
    assert endpoints(["placement=team", "autopilot=ops"]) == endpoints(["placement=team,autopilot=ops"])
    assert endpoints(None) == {}


@pytest.mark.parametrize("address", ["0.0.0.0:8090", ":8090", "10.0.0.7:8090", "somewhere:8090"])
def test_console_settings_require_tls_beyond_loopback(address: str) -> None:
    with pytest.raises(BadSetting, match="--console-url https://HOST"):
        console_settings(address)
    served = console_settings(address, "https://console.example.com/", ("10.0.0.0/8",))
    assert served
    assert served.external_url == "https://console.example.com"


@pytest.mark.parametrize(
    "url", ["http://console.example.com", "https://console.example.com/path", "console", "https://"]
)
def test_console_settings_refuse_invalid_url(url: str) -> None:
    with pytest.raises(BadSetting, match="write https://HOST"):
        console_settings("127.0.0.1:8090", url)


def test_console_settings_off_and_invalid_proxy() -> None:
    assert console_settings("0") is None
    with pytest.raises(BadSetting, match="--console-proxies"):
        console_settings("127.0.0.1:8090", "", ("the proxy",))


def test_notify_names_an_endpoint_for_controllers_without_spec_notify() -> None:
    assert notify_endpoints(("placement=team", "autopilot=ops")) == {"placement": "team", "autopilot": "ops"}


@pytest.mark.parametrize("text", ["placement", "placement=", "=team", "approver=team", "nobody=team", ""])
def test_notify_refuses_other_controllers_and_no_endpoint(text: str) -> None:
    with pytest.raises(BadSetting, match="write autopilot=ENDPOINT or placement=ENDPOINT"):
        notify_endpoints((text,))


def test_notify_refuses_an_unknown_endpoint() -> None:
    check_endpoints({"placement": "team"}, {"team"})
    with pytest.raises(BadSetting, match=r"--notify placement=taem: endpoint not found; --notify-config defines team$"):
        check_endpoints({"placement": "taem"}, {"team"})
    with pytest.raises(BadSetting, match=r"--notify-config defines no endpoints$"):
        check_endpoints({"placement": "team"}, ())
