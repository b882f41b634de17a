/** The messenger's folder on a plain static host, as the README says: not at the relay. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { WebFile } from '../build.ts';

const policy = /Content-Security-Policy" content="([^"]+)"/;

/** A host that answers while it runs, and drops what it gets while it is paused. */
export interface Elsewhere extends AsyncDisposable {
  readonly url: string;
  isPaused: boolean;
  /** Serves another content under a name from now on. */
  change(name: string, by: (content: string) => string): void;
}

/**
 * Serves the folder at `localhost` by HTTP, where browsers permit what needs HTTPS elsewhere, also those that do not
 * know the relay's certificate.
 *
 * @param config content of `config.json`
 */
export async function serveElsewhere(folder: string, config: string): Promise<Elsewhere> {
  const list: { files: WebFile[] } = JSON.parse(readFileSync(join(folder, 'files.json'), 'utf8'));
  const files = new Map<string, readonly [type: string, content: Buffer | string]>(
    list.files.map(({ name, type }) => [`/${name}`, [type, readFileSync(join(folder, name))]]),
  );
  const page = files.get('/index.html') as readonly [string, Buffer];
  files.set('/', page).set('/config.json', ['application/json', config]);
  const [, rules = ''] = policy.exec(page[1].toString()) ?? [];
  const host = { isPaused: false };
  const server = createServer(({ url = '' }, response) => {
    if (host.isPaused) return response.destroy();
    const { pathname } = new URL(url, 'http://localhost');
    const [type, content] = files.get(pathname) ?? [];
    if (content === undefined || type === undefined) return response.writeHead(404).end();
    const headers = {
      ...{ 'content-type': type, 'cache-control': 'no-cache' },
      ...{ 'content-security-policy': `${rules}; frame-ancestors 'none'` },
      ...{ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' },
      ...{ 'cross-origin-opener-policy': 'same-origin' },
      ...{ 'cross-origin-resource-policy': 'same-origin' },
    };
    return response.writeHead(200, headers).end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(host, {
    url: `http://localhost:${port}/`,
    change(name: string, by: (content: string) => string) {
      const [type, content] = files.get(name) as readonly [string, Buffer | string];
      files.set(name, [type, by(content.toString())]);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
