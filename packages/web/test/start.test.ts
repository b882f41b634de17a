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

/** Keeps what the worker says of its connection from the page until `connect()`. */
const holdConnection = `(() => {
  let held = [];
  globalThis.connect = () => {
    for (const deliver of held) deliver();
    held = undefined;
  };
  const own = Worker.prototype.addEventListener;
  Worker.prototype.addEventListener = function (type, listener, ...rest) {
    const hear = (event) => {
      const isHeld = held !== undefined && JSON.stringify(event.data ?? null).includes('"connection"');
      if (isHeld) held.push(() => listener.call(this, event));
      else listener.call(this, event);
    };
    own.call(this, type, hear, ...rest);
  };
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
    await page.addInitScript(holdConnection);
    await page.goto(office.url);
    await page.locator('.entry').first().waitFor();
    const connection = () =>
      page.evaluate(`document.querySelector('.pane [role=status]')?.textContent`);
    expect(await connection()).toBe('Connecting…');
    await page.evaluate('connect()');
    await expect.poll(connection).toBe('Connected');
    // The frame that shows it, and the one that is looked at next.
    await page.evaluate(
      'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
    );
    const places = (await page.evaluate('places')) as number[];
    expect(places.length).toBeGreaterThan(0);
    expect(new Set(places).size).toBe(1);
  },
);
