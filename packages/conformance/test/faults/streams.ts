/** Replaces how a relay serves the streams of other relays. */
import type { PeerStream } from '@posthouse/peer';
import {
  decodeKadMessage,
  encodeKadMessage,
  type KadMessage,
} from '@posthouse/protocol/federation';
import { DhtServer } from '../../../relay/src/federation/dht/serve.ts';
import { RpcServer } from '../../../relay/src/federation/rpc/serve.ts';
import { all, replace } from './replace.ts';

type Serve = (stream: PeerStream, serve: (stream: PeerStream) => Promise<void>) => Promise<void>;

let serveDht: Serve | undefined;
let serveRpc: Serve | undefined;

/**
 * Lets faults replace how streams are served. The parts take these methods when a relay starts, so
 * this comes before.
 */
export function openStreamsToFaults(): Disposable {
  return all(
    replace(
      DhtServer.prototype,
      'serve',
      (original) =>
        async function (this: DhtServer, stream, on) {
          const serve = (one: PeerStream) => original.call(this, one, on);
          await (serveDht === undefined ? serve(stream) : serveDht(stream, serve));
        },
    ),
    replace(
      RpcServer.prototype,
      'serve',
      (original) =>
        async function (this: RpcServer, stream, on) {
          const serve = (one: PeerStream) => original.call(this, one, on);
          await (serveRpc === undefined ? serve(stream) : serveRpc(stream, serve));
        },
    ),
  );
}

function servingDht(serve: Serve): Disposable {
  serveDht = serve;
  return {
    [Symbol.dispose]() {
      serveDht = undefined;
    },
  };
}

export function servingRpc(serve: Serve): Disposable {
  serveRpc = serve;
  return {
    [Symbol.dispose]() {
      serveRpc = undefined;
    },
  };
}

const bounds = { peers: 100, addresses: 8 };

/**
 * Answers DHT requests; `undefined` lets the relay answer.
 *
 * @param options.most requests of one stream that are answered
 */
export function answeringDht(
  answer: (
    request: KadMessage,
    honest: () => Promise<KadMessage>,
  ) => Promise<KadMessage> | undefined,
  { most = Number.POSITIVE_INFINITY }: { readonly most?: number } = {},
): Disposable {
  return servingDht(async (stream, serve) => {
    for (let count = 0; count < most; count += 1) {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      const request = decodeKadMessage(frame, bounds);
      const honest = () => serveOne(frame, serve, stream);
      const reply = await (answer(request, honest) ?? honest());
      await stream.writeFrame(encodeKadMessage(reply));
    }
  });
}

/** Lets the relay serve one request of a stream; a reset passes on. */
async function serveOne(
  frame: Uint8Array,
  serve: (stream: PeerStream) => Promise<void>,
  stream: PeerStream,
): Promise<KadMessage> {
  let reply: KadMessage | undefined;
  let next: Uint8Array | undefined = frame;
  const facade = {
    readFrame: async () => {
      const one = next;
      next = undefined;
      return one;
    },
    writeFrame: async (bytes: Uint8Array) => {
      reply = decodeKadMessage(bytes, bounds);
    },
    reset: () => {},
  };
  await serve(facade as unknown as PeerStream);
  if (reply === undefined) {
    stream.reset();
    throw new TypeError('reset');
  }
  return reply;
}
