/** Serves a page with one script, under a strict policy, as an app should be. */
import { readFileSync } from 'node:fs';
import { createServer as createPlainServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';

const client = fileURLToPath(new URL('../../../', import.meta.url));
const pageVitest = fileURLToPath(
  new URL('../../../../protocol/test/browser/page-vitest.ts', import.meta.url),
);

/** Test files that run in a page register their tests with a small Vitest. */
const vitestOfPages: Plugin = {
  name: 'vitest',
  setup({ onResolve }) {
    onResolve({ filter: /^vitest$/ }, () => ({ path: pageVitest }));
  },
};

/** What a page complains of goes to `complaints`, before anything else runs. */
const listeners = `
globalThis.complaints = [];
const complain = (...all) => complaints.push(all.map((one) => one?.message ?? String(one)).join(' '));
for (const level of ['error', 'warn']) console[level] = complain;
addEventListener('error', ({ message }) => complain('error', message));
addEventListener('unhandledrejection', ({ reason }) => complain('rejection', reason));
addEventListener('securitypolicyviolation', (event) =>
  complain(event.violatedDirective, event.blockedURI, event.sample));
`;

/** Where a browser looks for the origins that may use a domain's passkeys. */
const relatedOrigins = '/.well-known/webauthn';

const types: Readonly<Record<string, string>> = {
  '/': 'text/html',
  [relatedOrigins]: 'application/json',
};

/** @param program TypeScript; its imports are relative to the client's folder */
export async function bundleForPage(program: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: client, loader: 'ts' },
    ...({ bundle: true, write: false, platform: 'browser', format: 'iife' } as const),
    ...({ target: 'es2024', logLevel: 'silent' } as const),
    plugins: [vitestOfPages],
  });
  return outputFiles[0]?.text ?? '';
}

export interface AppServer extends AsyncDisposable {
  readonly url: string;
}

/** What a page runs, and what its worker does, if it has one. */
export interface Scripts {
  readonly page: string;
  readonly worker?: string;
}

/**
 * @param tls a folder with `server.key` and `server.pem`; without it the page is served over HTTP at
 *   `localhost`, where browsers that do not know the certificate permit what needs HTTPS
 * @param relay origin of the relay that the page may call
 * @param related origins of other domains that may use this one's passkeys
 */
export async function serveApp(
  { page: script, worker = '' }: Scripts,
  {
    tls,
    relay,
    related,
  }: { readonly tls?: string; readonly relay: string; readonly related?: readonly string[] },
): Promise<AppServer> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    'img-src data:',
    `connect-src ${relay} ${relay.replace('https', 'wss')}`,
    "require-trusted-types-for 'script'",
    // The one that a page needs to start its worker.
    `trusted-types ${worker === '' ? "'none'" : 'app'}`,
    "worker-src 'self'",
    ...["base-uri 'none'", "form-action 'none'"],
  ].join('; ');
  const serve: RequestListener = ({ url }, response) => {
    const type = types[url ?? ''] ?? 'text/javascript';
    const scripts = '<script src=listeners.js></script><script src=app.js></script>';
    const page = `<!doctype html><meta charset=utf-8><link rel=icon href=data:,>${scripts}`;
    const texts = {
      '/': page,
      '/app.js': script,
      '/worker.js': worker,
      '/listeners.js': listeners,
      [relatedOrigins]: related && JSON.stringify({ origins: related }),
    };
    const text = texts[url as keyof typeof texts];
    response.writeHead(text === undefined ? 404 : 200, {
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': policy,
    });
    response.end(text);
  };
  const read = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8');
  const server =
    tls === undefined
      ? createPlainServer(serve)
      : createServer({ key: read(tls, 'server.key'), cert: read(tls, 'server.pem') }, serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: tls === undefined ? `http://localhost:${port}/` : `https://127.0.0.1:${port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
