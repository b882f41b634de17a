/** A browser with the messenger of a relay, as one person uses it. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { connect } from 'node:tls';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const executable = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) =>
  existsSync(path),
);

export const hasChromium = executable !== undefined;

/**
 * Opens Chromium, which takes the certificates of relays for trusted ones: a service worker is not
 * registered where certificate errors are only ignored.
 */
export async function openBrowser(...origins: readonly string[]): Promise<Browser> {
  return await openBrowserWith([], ...origins);
}

/** The same, with more arguments for Chromium. */
export async function openBrowserWith(
  args: readonly string[],
  ...origins: readonly string[]
): Promise<Browser> {
  const keys = await Promise.all(origins.map(publicKeyOf));
  return await chromium.launch({
    executablePath: executable as string,
    args: [
      ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
      `--ignore-certificate-errors-spki-list=${keys.join()}`,
      ...args,
    ],
  });
}

/** Digest of the public key that a server proves, base64. */
async function publicKeyOf(origin: string): Promise<string> {
  const { hostname, port } = new URL(origin);
  const key = await new Promise<Buffer>((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      resolve(certificate?.publicKey.export({ type: 'spki', format: 'der' }) as Buffer);
      socket.end();
    });
  });
  return createHash('sha256').update(key).digest('base64');
}

/** One person's browser, with what its page complained of. */
export interface Visitor {
  readonly page: Page;
  readonly complaints: string[];
}

export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visitor> {
  const context = await browser.newContext({ viewport: { width: 1_100, height: 750 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (line) => {
    // The browser itself notes each request that has no network.
    if (line.text().includes('net::ERR_INTERNET_DISCONNECTED')) return;
    if (['error', 'warning'].includes(line.type())) complaints.push(line.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error.stack)));
  await page.goto(url);
  return { page, complaints };
}
