/** The tree of hostile bodies as elements of a page, in a real browser under a strict policy. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostileBodies } from './hostile-bodies.ts';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
);

/** What an app does with a tree: one element for each node, and text as text. */
const page = `
import { readBody, visibleName } from './src/content/index.ts';
const tags = { paragraph: 'p', quote: 'blockquote', rule: 'hr', code: 'code', emphasis: 'em',
  strong: 'strong', break: 'br', code_block: 'pre', source_block: 'pre', plain: 'pre', link: 'a' };
function element(node) {
  if (node.kind === 'text') return document.createTextNode(node.text);
  const tag = node.kind === 'heading' ? 'h' + node.level : node.kind === 'list' ? 'ul' : tags[node.kind];
  const made = document.createElement(tag ?? 'span');
  if (node.kind === 'link') { made.href = node.url; made.title = node.host; }
  if (node.text !== undefined) made.append(node.text);
  for (const child of node.children ?? []) made.append(element(child));
  for (const item of node.items ?? []) {
    const li = document.createElement('li');
    li.append(...item.map(element));
    made.append(li);
  }
  return made;
}
globalThis.show = (texts) => {
  for (const text of texts) {
    const { blocks } = readBody({ content_type: 'text/markdown', text });
    document.body.replaceChildren(...blocks.map(element), visibleName(text.slice(0, 99)));
  }
  return texts.length;
};`;

describe.skipIf(executablePath === undefined)('04 §8: bodies in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: executablePath as string,
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    });
  });
  afterAll(() => browser.close());

  test('200 hostile bodies cause no request, no navigation, no script and no error', async () => {
    const { outputFiles } = await build({
      stdin: { contents: page, resolveDir: fileURLToPath(new URL('../../', import.meta.url)) },
      ...({ bundle: true, write: false, platform: 'browser', format: 'iife' } as const),
      ...({ target: 'es2024', logLevel: 'silent' } as const),
    });
    const tab = await browser.newPage();
    const seen: string[] = [];
    tab.on('console', (line) => seen.push(line.text()));
    tab.on('pageerror', (error) => seen.push(error.message));
    tab.on('dialog', (dialog) => void dialog.dismiss().then(() => seen.push('a dialog')));
    tab.on('framenavigated', (frame) => seen.push(`navigated to ${frame.url()}`));
    await tab.context().route('**', async (route) => {
      const url = route.request().url();
      if (url === 'https://app.example/app.js') {
        return await route.fulfill({
          contentType: 'text/javascript',
          body: outputFiles[0]?.text ?? '',
        });
      }
      if (url !== 'https://app.example/') seen.push(`requested ${url}`);
      // Requests are let through to where this test counts them; scripts only if they are the app's.
      const policy = "script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";
      await route.fulfill({
        contentType: 'text/html',
        headers: { 'content-security-policy': policy },
        body: '<!doctype html><link rel=icon href=data:,><body></body><script src=app.js></script>',
      });
    });
    await tab.goto('https://app.example/');
    const texts = Object.values(hostileBodies).flat();
    const shown = await tab.evaluate((given) => {
      return (globalThis as unknown as { show(texts: string[]): number }).show(given);
    }, texts);
    expect(shown).toBe(texts.length);
    expect(seen).toEqual(['navigated to https://app.example/']);
    await tab.close();
  });
});
