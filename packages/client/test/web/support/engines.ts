/** The engines of this machine; a test skips those that are missing, and names them. */
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { type ChromiumBrowser, openChromium } from './chromium.ts';
import type { Browser } from './engine.ts';
import { type FirefoxBrowser, openFirefox } from './firefox.ts';
import { openWebKit } from './webkit.ts';

const found = (...paths: string[]) => paths.find((path) => existsSync(path));

/** Where each engine is, as Debian installs it. */
const executables = {
  Chromium: found('/usr/bin/chromium', '/usr/bin/chromium-browser'),
  Firefox: found('/usr/bin/firefox-esr', '/usr/bin/firefox'),
  WebKit: found('/usr/bin/Xvfb') && found('/usr/bin/WebKitWebDriver'),
};
export type EngineName = keyof typeof executables;

export const engineNames = Object.keys(executables) as EngineName[];

export const isMissing = (name: EngineName) => executables[name] === undefined;

/** Opens Firefox with an empty profile and settings of its own. */
export async function openFirefoxWith(
  settings: Readonly<Record<string, boolean | number | string>>,
): Promise<FirefoxBrowser> {
  if (executables.Firefox === undefined) throw new Error('Firefox is not installed');
  return await openFirefox(executables.Firefox, settings);
}

/** Opens Chromium with an empty profile and arguments of its own. */
export async function openChromiumWith(args: readonly string[]): Promise<ChromiumBrowser> {
  if (executables.Chromium === undefined) throw new Error('Chromium is not installed');
  return await openChromium(executables.Chromium, args);
}

/** Opens a browser with an empty profile. */
export async function openBrowser(name: 'Chromium'): Promise<ChromiumBrowser>;
export async function openBrowser(name: EngineName): Promise<Browser>;
export async function openBrowser(name: EngineName): Promise<Browser> {
  const executable = executables[name];
  if (executable === undefined) throw new Error(`${name} is not installed`);
  if (name === 'Chromium') return await openChromium(executable);
  if (name === 'Firefox') return await openFirefox(executable);
  return await openWebKit(executable, await freePort());
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
