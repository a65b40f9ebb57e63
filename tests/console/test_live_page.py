"""The open page keeps what a person is doing while it is updated: input, focus, opened details and scrolling."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, expect

from tests.console.objects import OTHER_PLAN, PLAN, a_review, put_config
from virt_steward.apis.profiles import LOAD_AWARE
from virt_steward.console import html
from virt_steward.controllers.advisor.annotation_keys import REJECTED_PLAN
from virt_steward.kube.client import Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIELD = '<label for="c">Comment</label>\n<input id="c">'
FORM = f'<form method="post">\n{FIELD}\n<button>Send</button>\n</form>'
NAMED = FORM.replace("<form", '<form id="decide"')
NOTE = '<p id="note">Loading</p>'
OTHER = '<form method="post" action="/other">\n<button>Other</button>\n</form>'
DIFF = '<pre class="diff" tabindex="0">{}</pre>'
IS_SHOWN = """(content) => {
  const page = document.createElement("div");
  page.id = "page";
  page.innerHTML = content;
  return page.isEqualNode(document.getElementById("page"));
}"""


def a_plan(plan: str) -> str:
    return f"""<form method="post" id="decide" data-plan="{plan}">
{FIELD}
<button formaction="/approve">Approve {plan}</button>
<p class="stale" hidden>Changed</p>
</form>"""


def rows(*names: str) -> str:
    fields = {"x": FIELD}
    return "<ul>\n" + "\n".join(f'<li id="{one}">{fields.get(one, one)}</li>' for one in names) + "\n</ul>"


@pytest_asyncio.fixture(loop_scope="module")
async def bare(chromium: Chromium) -> AsyncIterator[Page]:
    """A page with the console's script and nothing else."""
    context = await chromium.new_context(viewport={"width": 600, "height": 400})
    page = await context.new_page()
    await page.set_content('<body><nav id="nav"></nav><div id="page"></div></body>')
    await page.add_style_tag(content=html.static("console.css").decode())
    await page.add_script_tag(content=html.static("console.js").decode())
    yield page
    await context.close()


async def update(page: Page, content: str) -> None:
    """Do what the page does when an update arrives."""
    await page.evaluate("(page) => show({ title: 'Test', nav: '', page })", content)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(f"{NOTE}\n<h1>Plan</h1>\n{NAMED}", f"<h1>Plan</h1>\n{NAMED}", id="a note above ends"),
        pytest.param(f"<h1>Plan</h1>\n{NAMED}", f"{NOTE}\n<h1>Plan</h1>\n{NAMED}", id="a note above begins"),
        pytest.param(f"{NOTE}\n<h1>Plan</h1>\n{FORM}", f"<h1>Plan</h1>\n{FORM}", id="without an id, a note ends"),
        pytest.param(f"<h1>Plan</h1>\n{FORM}", f"{NOTE}\n<h1>Plan</h1>\n{FORM}", id="without an id, a note begins"),
        pytest.param(f"{FORM}\n<ul></ul>", f"<nav></nav>\n{FORM}\n<ul></ul>", id="an element before it"),
        pytest.param(f"<p>1</p>\n<p>2</p>\n{NAMED}", f"<p>1</p>\n{NAMED}\n<p>2</p>", id="an element goes behind it"),
        pytest.param(f"{OTHER}\n{FORM}", FORM, id="another form ends"),
        pytest.param(FORM, f"{OTHER}\n{FORM}", id="another form begins"),
        pytest.param(NAMED, "<p>Not found</p>", id="the form ends"),
        pytest.param(NAMED, '<form id="decide" method="post"><p>You may not</p></form>', id="the field ends"),
        pytest.param(f"<section>{FORM}</section>", "<p>Not found</p>", id="the section ends"),
        pytest.param(rows("a", "b", "x"), rows("x", "b", "a"), id="its row rises"),
        pytest.param(rows("x", "b", "a"), rows("a", "b", "x"), id="its row sinks"),
        pytest.param(rows("a", "x", "d"), rows("d", "x", "a"), id="rows change sides"),
        pytest.param(a_plan(""), a_plan("2"), id="the first plan"),
        pytest.param(a_plan("1"), a_plan("2"), id="another plan"),
    ],
)
async def test_update_keeps_typing(bare: Page, before: str, after: str) -> None:
    await update(bare, before)
    field = bare.get_by_label("Comment")
    await field.press_sequentially("half")
    for content in (after, before, after):
        await update(bare, content)
        await bare.keyboard.type(" more")
    assert await bare.evaluate("document.getElementById('c').value") == "half more more more"


async def test_update_ends_with_its_content(bare: Page) -> None:
    """Whatever was shown before, the page has the elements of the update, in their order."""
    contents = (
        f"{NOTE}\n<h1>One</h1>\n{rows('a', 'b', 'd')}\n{NAMED}",
        f"<h1>Two</h1>\n{NAMED}\n{rows('d', 'e')}\n<p>Text <b>bold</b> text</p>",
        f"{OTHER}\n{rows('e', 'd', 'a', 'b')}\n<p>Text</p>\n<p>Text</p>",
        "Only text",
        a_plan(""),
    )
    for before in contents:
        for after in contents:
            for content in (before, after):
                await update(bare, content)
            assert await bare.evaluate(IS_SHOWN, after), f"{before} to {after}"


async def test_update_keeps_opened_details_and_scrolling(bare: Page) -> None:
    diff = DIFF.format("long " * 200)
    before = f"{NOTE}\n<p>1</p>\n<details><summary>More</summary>{diff}</details>"
    await update(bare, before)
    await bare.get_by_text("More").click()
    await bare.locator("pre").evaluate("one => { one.scrollLeft = 120; }")
    for content in (before.replace(NOTE, ""), before.replace("<p>1</p>", "<h2>1</h2>\n<p>2</p>"), before):
        await update(bare, content)
        assert await bare.locator("details").get_attribute("open") is not None
        assert await bare.locator("pre").evaluate("one => one.scrollLeft") == 120


async def test_update_keeps_scroll_position_of_page(bare: Page) -> None:
    many = "\n".join(f"<p>{number}</p>" for number in range(100))
    await update(bare, f'<h1>Plan</h1>\n{many}\n<p id="here">here</p>\n{many}')
    here = bare.locator("#here")
    await here.evaluate("one => one.scrollIntoView()")
    await update(bare, f'{NOTE}\n<h1>Plan</h1>\n<p>0</p>\n{many}\n<p id="here">here</p>\n{many}')
    await expect(here).to_be_in_viewport()


async def test_focused_button_never_becomes_another(bare: Page) -> None:
    await update(bare, NAMED.replace("<button>", '<button formaction="/reject">'))
    await bare.get_by_role("button").focus()
    await update(bare, NAMED.replace("<button>", '<button formaction="/approve">'))
    assert await bare.evaluate("document.activeElement.nodeName") == "BODY"


async def test_vanished_form_cannot_be_sent(bare: Page) -> None:
    await update(bare, NAMED)
    await bare.get_by_label("Comment").fill("typed")
    await update(bare, "<p>Not found</p>")
    await expect(bare.get_by_role("button")).to_be_disabled()
    await update(bare, NAMED)
    await expect(bare.get_by_role("button")).to_be_enabled()


async def test_untouched_form_vanishes(bare: Page) -> None:
    await update(bare, NAMED)
    await update(bare, "<p>Not found</p>")
    await expect(bare.locator("form")).to_have_count(0)


async def test_plan_that_returns_can_be_decided(bare: Page) -> None:
    await update(bare, a_plan("1"))
    warning, button = bare.get_by_text("Changed"), bare.get_by_role("button")
    for content in (a_plan("2"), "", a_plan("2")):
        await update(bare, content)
        await expect(button).to_be_disabled()
        await expect(button).to_have_text("Approve 1")
        await expect(warning).to_be_visible()
    await update(bare, a_plan("1"))
    await expect(button).to_be_enabled()
    await expect(warning).to_be_hidden()


async def test_plan_page_keeps_typing_while_it_changes(page: Page, client: Client) -> None:
    """The update comes between two keys: an element above the form ends, and then the plan changes."""
    await put_config(client, a_review(), annotations={REJECTED_PLAN: OTHER_PLAN})
    await page.goto(f"/profiles/{LOAD_AWARE}")
    note = page.get_by_text("An earlier plan was rejected")
    await expect(note).to_be_visible()
    await expect(page.locator(f"#decide[data-plan='{PLAN}']")).to_be_visible()
    comment = page.get_by_label("Comment")
    await comment.press_sequentially("half")
    await put_config(client, a_review(), annotations={REJECTED_PLAN: None})
    await expect(note).to_be_hidden()
    await page.keyboard.type(" a")
    await put_config(client, a_review(plan=OTHER_PLAN))
    await expect(page.get_by_text("The plan has changed since you opened it")).to_be_visible()
    await page.keyboard.type(" sentence")
    assert await comment.input_value() == "half a sentence"
