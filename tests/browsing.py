"""Pages in a real browser, which is told to go nowhere."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def opened(path, **options):
    """The page in a browser window, with all charts drawn; `page.requests` and `page.complaints` say what it did."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium; on Debian: apt-get install chromium")
    sync_playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").sync_playwright
    options = {"viewport": {"width": 1280, "height": 900}, **options}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        page = browser.new_context(**options).new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        yield page
        browser.close()


def column(page, table, number):
    """Texts of a column, as they stand."""
    return page.locator(f"{table} tbody tr > :nth-child({number})").all_inner_texts()


def widths(page):
    """Of the content and of the window."""
    return page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
