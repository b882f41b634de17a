/**
 * `npm run pictures`: makes the README's pictures of the messenger, light and dark, and those of docs/messenger.md,
 * of the screens that a test walks through. Fails if the README's are larger than 200 KB together, or the others.
 * With `MESSENGER_PICTURES=folder`, takes those that a run of that test kept there.
 *
 * @example
 * npm run pictures
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openBrowser } from '../packages/web/test/support.ts';

const most = 204_800;
/** The screens of docs/messenger.md, as narrow as a telephone. */
const screens = [
  ...['welcome', 'list', 'conversation', 'person', 'add-person', 'group-conversation', 'group'],
  ...['channel', 'settings', 'devices', 'home', 'lock'],
];
const root = join(import.meta.dirname, '..');
const { MESSENGER_PICTURES: kept } = process.env;
const folder = kept ?? mkdtempSync(join(tmpdir(), 'pictures-'));
try {
  if (kept === undefined) {
    execFileSync('npx', ['vitest', 'run', 'packages/web/test/screens.test.ts'], {
      ...{ cwd: root, stdio: 'inherit' },
      env: { ...process.env, MESSENGER_PICTURES: folder },
    });
  }
  const read = (name: string) => readFileSync(join(folder, `${name}.png`));
  write(['light', 'dark'].map((to) => [`messenger-${to}.png`, read(`conversation-wide-${to}`)]));
  const names = screens.map((screen) => `screen-${screen}.webp`);
  const contents = await asWebp(screens.map((screen) => read(`${screen}-narrow-light`)));
  write(names.map((name, index) => [name, contents[index] as Buffer]));
} finally {
  if (kept === undefined) rmSync(folder, { recursive: true });
}

/** Writes pictures of docs/pictures. @throws Error if they are too large together */
function write(pictures: readonly (readonly [name: string, content: Buffer])[]): void {
  const bytes = pictures.reduce((sum, [, { length }]) => sum + length, 0);
  if (bytes > most) throw new Error(`pictures: ${bytes} bytes, more than ${most}`);
  for (const [name, content] of pictures) {
    writeFileSync(join(root, 'docs/pictures', name), content);
  }
}

/** Pictures in a format that needs a third of the bytes. */
async function asWebp(pictures: readonly Buffer[]): Promise<readonly Buffer[]> {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    const urls = (await page.evaluate(
      `Promise.all(${JSON.stringify(pictures.map((png) => png.toString('base64')))}.map(async (png) => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + png;
        await image.decode();
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width, image.height];
        canvas.getContext('2d').drawImage(image, 0, 0);
        return canvas.toDataURL('image/webp', 0.6);
      }))`,
    )) as string[];
    return urls.map((url) => Buffer.from(url.replace(/^.*,/, ''), 'base64'));
  } finally {
    await browser.close();
  }
}
