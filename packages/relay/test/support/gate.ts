import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** A way to a server for one connection: closed, it keeps what the client sends until it is opened. */
export interface Gate {
  readonly port: number;
  close(): void;
  open(): void;
}

/**
 * Opens a gate on loopback, for one connection; it ends with it.
 *
 * @param server where it leads to
 * @example
 * const gate = await openGate(new URL(relay.https));
 */
export async function openGate({ hostname, port }: URL): Promise<Gate> {
  let isOpen = true;
  const held: Buffer[] = [];
  let far: Socket | undefined;
  const server = createServer((near) => {
    far = connect(Number(port), hostname);
    far.on('error', () => near.destroy()).on('data', (data) => near.write(data));
    near.on('error', () => far?.destroy());
    near.on('data', (data: Buffer) => (isOpen ? far?.write(data) : held.push(data)));
    near.once('close', () => {
      far?.destroy();
      server.close();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as { readonly port: number }).port,
    close: () => {
      isOpen = false;
    },
    open: () => {
      isOpen = true;
      far?.write(Buffer.concat(held));
    },
  };
}
