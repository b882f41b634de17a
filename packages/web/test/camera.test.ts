/**
 * A new device reads the other one's link with its camera, in Chromium with a camera that films a file. Chromium on
 * Linux has no detector of QR codes; the one here compares each module of the picture with the code, and knows no other.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { correction, generate } from 'lean-qr';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginAccount, type Office, openOffice } from './office.ts';
import { hasChromium, openBrowserWith, visit } from './support.ts';

/** The camera's picture, in pixels; where the code is in it, and how large its modules are. */
const camera = { width: 640, height: 480, left: 40, top: 40, module: 5 } as const;

const codeOf = (text: string) => generate(text, { maxCorrectionLevel: correction.L });

/** One picture as a film that never ends (YUV4MPEG2): a code, dark on light. */
function filmOf(text: string): Buffer {
  const { width, height, left, top, module } = camera;
  const { get } = codeOf(text);
  const light = Buffer.alloc(width * height, 235);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const isDark = get(Math.floor((x - left) / module), Math.floor((y - top) / module));
      if (isDark) light[y * width + x] = 16;
    }
  }
  const frame = [Buffer.from('FRAME\n'), light, Buffer.alloc((width * height) / 2, 128)];
  const header = Buffer.from(`YUV4MPEG2 W${width} H${height} F10:1 Ip A1:1 C420jpeg\n`);
  return Buffer.concat([header, ...frame, ...frame]);
}

/** Runs in the page: a detector that knows one code. */
function detectorOf(text: string): string {
  const { size, get } = codeOf(text);
  const modules = Array.from({ length: size }, (_, y) =>
    Array.from({ length: size }, (_, x) => (get(x, y) ? 1 : 0)),
  );
  return `globalThis.BarcodeDetector = class {
    async detect(video) {
      const { left, top, module } = ${JSON.stringify(camera)};
      const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(video, 0, 0);
      const isSeen = ${JSON.stringify(modules)}.every((row, y) => row.every((dark, x) => {
        const at = [left + (x + 0.5) * module, top + (y + 0.5) * module].map(Math.floor);
        const [red] = context.getImageData(...at, 1, 1).data;
        return (red < 128) === (dark === 1);
      }));
      globalThis.looks = (globalThis.looks ?? 0) + 1;
      return isSeen ? [{ rawValue: ${JSON.stringify(text)} }] : [];
    }
  };`;
}

describe.skipIf(!hasChromium)('a camera', () => {
  const folder = mkdtempSync(join(tmpdir(), 'camera-'));
  const film = join(folder, 'film.y4m');
  let office: Office;
  let browser: Browser;
  beforeAll(async () => {
    writeFileSync(film, filmOf('nothing for this app'));
    office = await openOffice();
    const args = [
      '--use-fake-device-for-media-stream',
      `--use-file-for-fake-video-capture=${film}`,
    ];
    browser = await openBrowserWith(args, office.origin);
  });
  afterAll(async () => {
    await browser?.close();
    await office?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  test('03 §11.2: a new device joins by the code that its camera sees, and the camera is off afterwards', async () => {
    const old = await visit(browser, office.url);
    await beginAccount(old.page);
    await old.page.getByRole('button', { name: 'Settings' }).click();
    await old.page.getByRole('button', { name: 'Devices' }).click();
    await old.page.getByRole('button', { name: 'Add a device' }).click();
    const link = await old.page.getByLabel('Link for the new device', { exact: true }).inputValue();

    const { page, complaints } = await visit(browser, office.url, { permissions: ['camera'] });
    await page.addInitScript(detectorOf(link));
    await page.reload();
    await page.getByRole('button', { name: 'I have this account on another device' }).click();
    await page.getByRole('button', { name: 'Use the camera' }).click();
    // It looks on while there is no code that it knows.
    await expect.poll(() => page.evaluate('globalThis.looks')).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Stop the camera' }).click();
    await page.locator('video').waitFor({ state: 'detached' });
    writeFileSync(film, filmOf(link));
    await page.evaluate(`{
      const { getUserMedia } = MediaDevices.prototype;
      MediaDevices.prototype.getUserMedia = async function (...all) {
        globalThis.stream = await getUserMedia.apply(this, all);
        return globalThis.stream;
      };
    }`);
    await page.getByRole('button', { name: 'Use the camera' }).click();
    await page.getByRole('img', { name: 'QR code: Request of the new device' }).waitFor();
    const states = `globalThis.stream.getTracks().map(({ readyState }) => readyState)`;
    expect(await page.evaluate(states)).toEqual(['ended']);
    expect([...complaints, ...old.complaints]).toEqual([]);
  });

  test('03 §11.2: without permission it says so, and the text can be pasted', async () => {
    const { page } = await visit(browser, office.url, { permissions: [] });
    await page.addInitScript(detectorOf('any'));
    await page.reload();
    await page.getByRole('button', { name: 'I have this account on another device' }).click();
    await page.getByRole('button', { name: 'Use the camera' }).click();
    await page.getByText('The camera cannot be used').waitFor();
  });
});
