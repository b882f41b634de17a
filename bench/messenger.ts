/**
 * Measures how long the messenger takes from a reload until the list and the first conversation are shown, in
 * Chromium, with many messages stored; how long the page does not react meanwhile; and how long a key takes until it
 * is painted while older pages are loaded and while messages arrive; and when the list is right after the machine
 * slept and its connections were lost without a word.
 *
 *   npm run bench:messenger [-- --messages 10000 --reloads 11 --arriving 300 --sleeps 5]
 *
 * Times of reloads are milliseconds since the navigation began; files come from the service worker.
 */
import type { Account } from '@posthouse/client';
import type { Page } from 'playwright-core';
import { befriend, beginAccount, openOffice } from '../packages/web/test/office.ts';
import { openBrowserWith, visit } from '../packages/web/test/support.ts';
import { openWire } from '../packages/web/test/wire.ts';
import { count, readOptions } from './options.ts';

const values = readOptions('npm run bench:messenger', {
  messages: count(10_000),
  reloads: count(11),
  arriving: count(300),
  sleeps: count(5),
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

/** Another person writes so many messages to the page's. */
async function write(bob: Account, amount: number, what: string): Promise<void> {
  const [ann] = await bob.contacts.list();
  if (ann === undefined) throw new Error('there is no contact');
  for (let sent = 0; sent < amount; ) {
    for (const until = Math.min(amount, sent + 200); sent < until; ) {
      sent += 1;
      await bob.messages.post(ann.account, { text: `${what} ${sent} of many, of a usual length` });
    }
    await bob.sync();
  }
}

/**
 * Chromium paints nothing outside of its window, which is as large as the page, and a little lower: a key is painted
 * when something else is then. The field for messages is at the end of the page.
 */
async function enlargeWindow(page: Page): Promise<void> {
  const devTools = await page.context().newCDPSession(page);
  const { windowId } = await devTools.send('Browser.getWindowForTarget');
  const bounds = { width: 1_400, height: 1_000 };
  await devTools.send('Browser.setWindowBounds', { windowId, bounds });
}

/** Types words until something has happened; returns milliseconds from each key to its paint, 16 for less. */
async function typeUntil(page: Page, hasEnded: () => Promise<boolean>): Promise<number[]> {
  const field = page.getByLabel('Write a message');
  await field.fill('');
  await field.focus();
  await page.evaluate('keys.length = 0');
  let typed = '';
  for (; !(await hasEnded()); typed += 'word ') await page.keyboard.type('word ', { delay: 30 });
  if ((await field.inputValue()) !== typed) throw new Error('keys were lost');
  // Entries are given after the next paints.
  await page.evaluate(`new Promise((done) => setTimeout(done, 500))`);
  const slow = (await page.evaluate('keys')) as number[];
  return [...slow, ...Array.from<number>({ length: typed.length - slow.length }).fill(16)];
}

/** Loads older pages, up to the most that are held. */
async function whilePagesLoad(page: Page): Promise<number[]> {
  let pages = 0;
  return await typeUntil(page, async () => {
    pages += 1;
    await page.evaluate(`document.querySelector('.older button').click()`);
    return pages === 20;
  });
}

async function whileMessagesArrive(page: Page, bob: Account): Promise<number[]> {
  const writing = write(bob, values.arriving, 'Late');
  const last = page.locator('.messages').getByText(`Late ${values.arriving} of`);
  const keys = await typeUntil(page, async () => (await last.count()) > 0);
  await writing;
  return keys;
}

/**
 * Stops the browser for longer than a page that is only busy, while a message arrives and its connections end at the
 * relay alone. Returns the milliseconds from its wake until the list shows the message.
 */
async function afterSleep(page: Page, bob: Account, what: string): Promise<number> {
  const devTools = await browser.newBrowserCDPSession();
  const { processInfo } = await devTools.send('SystemInfo.getProcessInfo');
  const signalAll = (signal: 'SIGSTOP' | 'SIGCONT') => {
    for (const { id } of processInfo) process.kill(id, signal);
  };
  signalAll('SIGSTOP');
  wire.forget();
  try {
    await write(bob, 1, what);
    await new Promise((resolve) => setTimeout(resolve, 3_500));
  } finally {
    signalAll('SIGCONT');
  }
  const awake = performance.now();
  await page.locator('.entry').filter({ hasText: what }).waitFor();
  return performance.now() - awake;
}

await using office = await openOffice();
await using wire = await openWire(office.origin);
const browser = await openBrowserWith([wire.arg], office.origin);
const { page } = await visit(browser, office.url);
page.setDefaultTimeout(600_000);
await beginAccount(page);
const bob = await office.newPerson();
await befriend(page, bob, 'Bob');
await write(bob, values.messages, 'Message');
const newest = page.locator('.entry').filter({ hasText: `Message ${values.messages} of` });
await newest.waitFor({ timeout: 600_000 });
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
await enlargeWindow(page);
const typing = {
  'key, while 19 older pages load': await whilePagesLoad(page),
  [`key, while ${values.arriving} messages arrive`]: await whileMessagesArrive(page, bob),
};
const sleeps: number[] = [];
for (let sleep = 1; sleep <= values.sleeps; sleep += 1) {
  sleeps.push(await afterSleep(page, bob, `Meanwhile${sleep}`));
}
await browser.close();

/** Prints the median and the most of some times. */
function print(title: string, times: readonly number[]): void {
  const sorted = times.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const most = sorted.at(-1) ?? 0;
  console.log(
    `${title.padEnd(36)} ${middle.toFixed(0).padStart(4)} ${most.toFixed(0).padStart(6)}`,
  );
}

console.log(`${values.messages} messages stored, ${values.reloads} reloads: median, most (ms)`);
for (const [of, title] of [
  ['list', 'list of conversations'],
  ['conversation', 'conversation that was open'],
  ['longest', 'longest time without reacting'],
] as const) {
  print(
    title,
    noted.map((each) => each[of]),
  );
}
print(`right list after each of ${values.sleeps} sleeps`, sleeps);
for (const [title, keys] of Object.entries(typing)) print(`${title}, ${keys.length} keys`, keys);
