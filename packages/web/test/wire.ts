/** The way of a browser to a relay. It can lose its connections as a sleeping laptop does: neither end is told. */

import type { AddressInfo } from 'node:net';
import { connect, createServer, type Socket } from 'node:net';

export interface Wire extends AsyncDisposable {
  /** The argument with which Chromium goes this way. */
  readonly arg: string;
  /** Ends all connections at the relay's end alone: the browser's are open, and nothing comes. */
  forget(): void;
  /** Stops each connection when it took so many bytes from the browser, until it is released. */
  holdAfter(bytes: number): void;
  release(): void;
}

/** @param origin of the relay, on loopback */
export async function openWire(origin: string): Promise<Wire> {
  const { host, port } = new URL(origin);
  const open = new Map<Socket, Socket>();
  let most = Number.POSITIVE_INFINITY;
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect(Number(port), '127.0.0.1');
    open.set(near, far);
    near.on('error', () => undefined);
    far.on('error', () => undefined);
    near.on('data', (data) => {
      far.write(data);
      if (near.bytesRead > most) near.pause();
    });
    far.on('data', (data) => near.write(data));
    near.once('close', () => {
      open.delete(near);
      far.destroy();
    });
    far.once('close', () => {
      if (open.get(near) === far) near.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const way = (server.address() as AddressInfo).port;
  return {
    arg: `--host-resolver-rules=MAP ${host} 127.0.0.1:${way}`,
    holdAfter(bytes) {
      most = bytes;
    },
    release() {
      most = Number.POSITIVE_INFINITY;
      for (const near of open.keys()) near.resume();
    },
    forget() {
      for (const [near, far] of open) {
        open.set(near, near);
        near.removeAllListeners('data').resume();
        far.destroy();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const near of open.keys()) near.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
