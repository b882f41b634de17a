/**
 * Measures how long the messenger takes from a reload until the list and the first conversation are shown, in
 * Chromium, with many messages stored; and how long the page does not react meanwhile.
 *
 *   npm run bench:messenger [-- --messages 10000 --reloads 11]
 *
 * Times are milliseconds since the navigation began; files come from the service worker.
 */
import { befriend, beginAccount, type Office, openOffice } from '../packages/web/test/office.ts';
import { openBrowser, visit } from '../packages/web/test/support.ts';
import { count, readOptions } from './options.ts';

const values = readOptions('npm run bench:messenger', {
  messages: count(10_000),
  reloads: count(11),
});

/** Notes in the page when something is shown first, and its long tasks. */
const notes = `
  globalThis.shown = {};
  globalThis.long = [];
  const wanted = { list: '.entry', conversation: '.messages article' };
  const look = () => {
    for (const [name, selector] of Object.entries(wanted)) {
      if (!(name in shown) && document.querySelector(selector)) shown[name] = performance.now();
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true });
  new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true });
  globalThis.keys = [];
  new PerformanceObserver((list) =>
    keys.push(...list.getEntries().filter(({ name }) => name === 'keydown').map(({ duration }) => duration)),
  ).observe({ type: 'event', durationThreshold: 16 });`;

interface Noted {
  readonly list: number;
  readonly conversation: number;
  readonly longest: number;
}

/** Lets another person write so many messages to the page's. */
async function fill(office: Office, page: Parameters<typeof befriend>[0]): Promise<void> {
  const bob = await office.newPerson();
  await befriend(page, bob, 'Bob');
  const [ann] = await bob.contacts.list();
  if (ann === undefined) throw new Error('there is no contact');
  for (let sent = 0; sent < values.messages; ) {
    const batch = Math.min(200, values.messages - sent);
    for (let at = 0; at < batch; at += 1) {
      sent += 1;
      await bob.messages.post(ann.account, { text: `Message ${sent} of many, of a usual length` });
    }
    await bob.sync();
  }
  const last = page.locator('.entry').filter({ hasText: `Message ${values.messages} of` });
  await last.waitFor({ timeout: 600_000 });
}

/** Types while older pages are loaded, up to the most that are held; returns milliseconds from each key to its paint. */
async function typing(): Promise<readonly number[]> {
  const field = page.getByLabel('Write a message');
  let typed = '';
  for (let pages = 1; pages < 20; pages += 1) {
    const older = page.getByRole('button', { name: 'Earlier messages' });
    await older.evaluate((button) => (button as unknown as { click(): void }).click());
    await field.focus();
    await page.keyboard.type('word ', { delay: 30 });
    typed += 'word ';
  }
  if ((await field.inputValue()) !== typed) throw new Error('keys were lost');
  return (await page.evaluate('keys')) as number[];
}

await using office = await openOffice();
const browser = await openBrowser(office.origin);
const { page } = await visit(browser, office.url);
page.setDefaultTimeout(600_000);
await beginAccount(page);
await fill(office, page);
await page.evaluate('navigator.serviceWorker.ready.then(() => 0)');
await page.locator('.entry').filter({ hasText: 'Bob' }).click();
await page.locator('.messages article').first().waitFor();
await page.addInitScript(notes);
const noted: Noted[] = [];
for (let reload = 0; reload < values.reloads; reload += 1) {
  await page.reload();
  await page.locator('.messages article').first().waitFor();
  const found = await page.evaluate('({ ...shown, longest: Math.max(0, ...long) })');
  noted.push(found as Noted);
}
const keys = await typing();
await browser.close();

const middle = (of: keyof Noted) => {
  const sorted = noted.map((each) => each[of]).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
};
const most = (of: keyof Noted) => Math.max(...noted.map((each) => each[of]));
console.log(`${values.messages} messages stored, ${values.reloads} reloads: median, most (ms)`);
for (const [of, title] of [
  ['list', 'list of conversations'],
  ['conversation', 'conversation that was open'],
  ['longest', 'longest time without reacting'],
] as const) {
  console.log(`${title.padEnd(30)} ${middle(of).toFixed(0)}   ${most(of).toFixed(0)}`);
}
const slowest = Math.max(16, ...keys);
console.log(
  `${'slowest key, to its paint'.padEnd(30)} ${slowest.toFixed(0)}, of 95 keys typed while 19 pages were loaded`,
);
