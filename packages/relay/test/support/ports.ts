import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that systems give to whoever connects: nobody takes one between look and use. */
const ports = { first: 10_000, behind: 32_000 } as const;

/** A port of this machine where nobody listens, for a server that must be told one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(ports.first, ports.behind);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return false;
  }
  probe.close();
  await once(probe, 'close');
  return true;
}
