import {
  defaultPeerLimits,
  ed25519Identity,
  PeerHost,
  type PeerHostOptions,
  type PeerLimits,
  type PeerProtocol,
} from '../../src/index.ts';

/** Like those of a relay, but for the limits that tests on one machine would meet. */
export const testLimits: PeerLimits = {
  ...defaultPeerLimits,
  handshakesPerAddress: 64,
  handshakeRate: 1_000,
  handshakeBurst: 1_000,
};

export const echoProtocol = '/test/echo/1.0.0';

/** Answers each frame with itself. */
const echo: PeerProtocol<string> = {
  streams: 64,
  async serve(stream) {
    for (let frame = await stream.readFrame(); frame !== undefined; ) {
      await stream.writeFrame(frame);
      frame = await stream.readFrame();
    }
  },
};

/** Differs for each number. */
export const identityOf = (number: number) => ed25519Identity(Buffer.alloc(32, number));

/** A host of the identity with this number that admits every peer and echoes. */
export function hostOf(
  number: number,
  options: Partial<PeerHostOptions<string>> = {},
): PeerHost<string> {
  return new PeerHost({
    identity: identityOf(number),
    descriptor: () => `{"relay":${number}}`,
    admit: async ({ descriptor }) => descriptor,
    protocols: new Map([[echoProtocol, echo]]),
    limits: testLimits,
    agent: 'test/1.0',
    ...options,
  });
}

/** Listens on a port of this machine that is free. */
export const anyPort = { host: '127.0.0.1', port: 0 };

/** Never aborts. */
export const forever = new AbortController().signal;

/** Waits for so many turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Resolves when the condition holds; it is looked at once in each turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turns(1);
}
