/** Chromium, through Playwright. */
import { chromium, type Page as Tab } from 'playwright-core';
import { asOutcome, type Browser, outcomeOf, type Page } from './engine.ts';

/** Its pages can be crashed, and have their space limited. */
export interface ChromiumBrowser extends Browser {
  /** The page, as Playwright has it. */
  readonly tab: Tab;
}

export async function openChromium(
  executablePath: string,
  more: readonly string[] = [],
): Promise<ChromiumBrowser> {
  const browser = await chromium.launch({
    executablePath,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
      ...['--disable-component-update', '--disable-sync', '--no-first-run'],
      ...more,
    ],
  });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const tab = await context.newPage();
  const complaints: string[] = [];
  tab.on('console', (line) => {
    if (line.type() === 'error') complaints.push(`${line.text()} ${line.location().url}`);
  });
  return {
    ...{ tab, complaints },
    page: pageOf(tab),
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

/** A page of Playwright as one of any engine. */
export function pageOf(tab: Tab): Page {
  return {
    open: async (url) => {
      await tab.goto(url);
    },
    resize: (width, height) => tab.setViewportSize({ width, height }),
    picture: () => tab.screenshot(),
    run: async (expression) => outcomeOf(await tab.evaluate(asOutcome(expression))),
  };
}
