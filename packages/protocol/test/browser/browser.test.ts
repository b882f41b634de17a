import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readVectorFile } from '../interop/vector-files.ts';
import { ownVectorTexts } from '../vectors/files.ts';
import { bundlePackage, bundleTests, publishedTests } from './bundle.ts';
import type { PageReport } from './page-vitest.ts';

const executablePath = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
].find((path) => existsSync(path));

describe('the package in a browser', () => {
  test('is bundled without any Node module', async () => {
    const { inputs } = await bundlePackage();
    expect(inputs.filter((path) => path.startsWith('node:'))).toEqual([]);
    expect(inputs.some((path) => path.endsWith('src/index.ts'))).toBe(true);
  });

  if (executablePath === undefined) {
    test.skip('skipped: no Chromium is installed', () => {});
    return;
  }

  let browser: Browser;
  beforeAll(async () => {
    // Playwright gives every launch a new, empty user data directory.
    browser = await chromium.launch({
      executablePath,
      args: [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
        ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
      ],
    });
  });
  afterAll(() => browser.close());

  test('derives the account of the check value in 01 §7', async () => {
    const { script } = await bundlePackage();
    const page = await browser.newPage();
    await page.addScriptTag({ content: script });
    const account = await page.evaluate(`(() => {
      const { Network, noblePrimitives, encodeBase64url, deriveAccountId } = globalThis.protocol;
      const context = 'neo:860833102:0x' + '01'.repeat(20);
      const network = new Network({ context, primitives: noblePrimitives });
      const key = noblePrimitives.p256.publicKey(new Uint8Array(32).fill(1));
      return deriveAccountId(network, encodeBase64url(key));
    })()`);
    expect(account).toBe('neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo');
    await page.close();
  });

  test('passes all vectors, ours and the published ones that are there', async () => {
    const published = publishedTests().map((name) => [name, readVectorFile(name)] as const);
    const present = published.filter(([, content]) => content !== undefined);
    const own = Object.fromEntries(ownVectorTexts());
    const handedOver = { own, published: Object.fromEntries(present) };
    const page = await browser.newPage();
    await page.evaluate((given) => Object.assign(globalThis, { handedOver: given }), handedOver);
    await page.addScriptTag({ content: (await bundleTests()).script });
    const report = await page.evaluate<PageReport>('globalThis.runVectors()');
    expect(report.failed).toEqual([]);
    expect(report.skipped.length).toBe(published.length - present.length);
    const cases = Object.values(own).join('').split('"operation":').length - 1;
    expect(report.passed).toBeGreaterThan(cases + present.length * 2);
    await page.close();
  }, 300_000);
});
