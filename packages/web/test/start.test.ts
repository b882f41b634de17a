/** What a person sees while the page connects, in Chromium on a real relay. */
import { expect, test } from 'vitest';
import { beginAccount, openOffice } from './office.ts';
import { hasChromium, openBrowser, visit } from './support.ts';

/** Notes where the first conversation is, in each frame that has it. */
const watchEntry = `(() => {
  globalThis.places = [];
  const look = () => {
    const entry = document.querySelector('.entry');
    if (entry !== null) places.push(entry.getBoundingClientRect().top);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()`;

test.skipIf(!hasChromium)(
  'the list does not move under a click when the page has connected',
  async () => {
    await using office = await openOffice();
    await using browser = await openBrowser(office.origin);
    const { page: first } = await visit(browser, office.url);
    await beginAccount(first);
    const page = await first.context().newPage();
    await page.addInitScript(watchEntry);
    await page.goto(office.url);
    const connection = () =>
      page.evaluate(`document.querySelector('.pane [role=status]')?.textContent`);
    await expect.poll(connection).toBe('Connected');
    const places = (await page.evaluate('places')) as number[];
    expect(places.length).toBeGreaterThan(0);
    expect(new Set(places).size).toBe(1);
  },
);
