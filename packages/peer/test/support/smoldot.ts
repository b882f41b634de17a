import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import {
  decodeHandshakePayload,
  formatPeerId,
  handshakeSigningInput,
} from '@posthouse/protocol/federation';
import { start } from 'smoldot';
import { vi } from 'vitest';
import { ByteTotal } from '../../src/byte-pool.ts';
import { systemClock } from '../../src/clock.ts';
import { PeerConnection, type PeerProtocol } from '../../src/connection.ts';
import { secureInbound } from '../../src/handshake.ts';
import { agreeOnYamux } from '../../src/muxer.ts';
import { generateNoiseKeys } from '../../src/noise/keys.ts';
import { makePeerPools } from '../../src/peer-pools.ts';
import { undivided } from '../../src/turns.ts';
import { chainSpec } from './chain-spec.ts';
import { descriptorExtension } from './descriptor-extension.ts';
import { anyPort, identityOf, testLimits, turns } from './hosts.ts';

/** smoldot, dialling one address. */
export interface SmoldotNode extends AsyncDisposable {
  /** Waits until it has logged a line that contains all of these, while its time passes. */
  logged(...parts: readonly string[]): Promise<void>;
  /** Waits for a condition, while its time passes. */
  until(condition: () => boolean): Promise<void>;
}

/** Milliseconds that pass in each turn of the event loop. */
const step = 5;

/**
 * Starts smoldot with one address to dial: the identity with a number, at a port of this machine.
 * Until it is disposed, time in this process passes as these methods let it.
 */
export async function startSmoldot(number: number, port: number): Promise<SmoldotNode> {
  const systemNow = performance.now;
  let now = performance.now();
  // smoldot repeats its work at once while its clock stands still, so each look moves it.
  performance.now = () => {
    now += 0.001;
    return now;
  };
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const lines: string[] = [];
  const client = start({
    maxLogLevel: 4,
    logCallback: (_level, _target, message) => void lines.push(message),
  });
  const bootNode = `/ip4/127.0.0.1/tcp/${port}/p2p/${formatPeerId(identityOf(number).peerId)}`;
  await client.addChain({ chainSpec: chainSpec(bootNode), disableJsonRpc: true });
  const until = async (condition: () => boolean) => {
    while (!condition()) {
      now += step;
      vi.advanceTimersByTime(step);
      await turns(1);
    }
  };
  return {
    until,
    logged: (...parts) =>
      until(() => lines.some((line) => parts.every((part) => line.includes(part)))),
    async [Symbol.asyncDispose]() {
      await client.terminate();
      vi.useRealTimers();
      performance.now = systemNow;
    },
  };
}

/**
 * Accepts the first peer without a descriptor: its handshake payload is decoded as if it had one.
 * All else is as strict as ever. Hosts have no way to do so, so this stands where a host would.
 */
export async function acceptWithoutDescriptor(
  number: number,
  protocols: ReadonlyMap<string, PeerProtocol<undefined>>,
): Promise<{ port: number; connected: Promise<PeerConnection<undefined>> } & Disposable> {
  const server = createServer({ noDelay: true });
  server.listen(anyPort);
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const connected = once(server, 'connection').then(([socket]) =>
    accept(socket as Socket, number, protocols),
  );
  return { port, connected, [Symbol.dispose]: () => void server.close() };
}

async function accept(
  socket: Socket,
  number: number,
  protocols: ReadonlyMap<string, PeerProtocol<undefined>>,
): Promise<PeerConnection<undefined>> {
  const identity = identityOf(number);
  const staticKeys = generateNoiseKeys();
  const { keys, peerId, descriptor } = await secureInbound(socket, {
    identity,
    staticKeys,
    signature: identity.sign(handshakeSigningInput(staticKeys.publicKey)),
    descriptor: () => '{}',
    decodePayload: (payload) =>
      decodeHandshakePayload(Buffer.concat([payload, descriptorExtension('{}')])),
    limits: testLimits,
    turns: undivided,
  });
  const pools = makePeerPools(testLimits, {
    clock: systemClock,
    total: new ByteTotal(testLimits.heldBytesOfAll),
    stuck: () => {},
  });
  const options = { keys, isDialer: false, limits: testLimits };
  return agreeOnYamux(socket, options, (channel, rest) => {
    const remote = { peerId, descriptor, address: '127.0.0.1', direction: 'inbound' } as const;
    const connection = new PeerConnection<undefined>(channel, {
      remote,
      peer: undefined,
      protocols,
      limits: testLimits,
      clock: systemClock,
      pools,
      closed: () => {},
      failed: () => {},
    });
    connection.start(rest);
    return connection;
  });
}
