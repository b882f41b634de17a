/** A connection of a relay of the kit with the relay under test: calls, raw streams and their ends. */
import { setTimeout } from 'node:timers/promises';
import { type PeerConnection, PeerError, type PeerStream, type RemotePeer } from '@posthouse/peer';
import { type FinalRoute, type Network, utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeFrame,
  encodeKadMessage,
  FrameError,
  type KadMessage,
  kadTypes,
  type RelayResponse,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual, Violation } from '../assert.ts';
import { recordOf } from './home-account.ts';

/** What came of a stream. */
export type StreamResult =
  | { readonly kind: 'frame'; readonly frame: Uint8Array }
  /** The relay ended its side without a frame. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'reset' };

/** Milliseconds in which a relay answers. */
const answerTime = 30_000;

/** Calls made at most while the relay answers `rate_limited`. */
const maxAttempts = 20;

/** More peers or addresses than an answer has. */
const bounds = { peers: 1_000, addresses: 100 };

export class RelayConnection {
  readonly connection: PeerConnection<RemotePeer>;
  readonly #network: Network;
  #lastId = 0;

  constructor(connection: PeerConnection<RemotePeer>, network: Network) {
    this.connection = connection;
    this.#network = network;
  }

  /** Name of the protocol of relay RPC, and of the relay DHT. */
  get protocols() {
    const { word } = this.#network;
    return { rpc: `/${word}/relay/1.0.0`, dht: `/${word}/kad/1.0.0` } as const;
  }

  /** Calls a method; once more after each rate limit, as the relay asks. */
  async call(method: string, params: JsonObject): Promise<RelayResponse> {
    for (let tries = 1; ; tries += 1) {
      const response = await this.callOnce(method, params);
      if (response.kind !== 'refused' || response.code !== 'rate_limited') return response;
      if (tries === maxAttempts) return response;
      await setTimeout(Math.max(response.retryAfter ?? 1, 0.2) * 1_000);
    }
  }

  /** Sends a request; returns whether the relay serves it, if only with an error of its parameters. */
  async isServed(): Promise<boolean> {
    const request = utf8('{"jsonrpc":"2.0","id":1,"method":"profile.resolve","params":{}}');
    const result = await this.send(this.protocols.rpc, encodeFrame(request));
    if (result.kind !== 'frame') return false;
    const response = readRelayResponse(Buffer.from(result.frame).toString(), 1);
    // A relay that refuses the peer may close the connection, reset the stream, or say so.
    return response.kind !== 'refused' || !/^(?:unauthorized|forbidden)$/.test(response.code);
  }

  /**
   * Waits until the relay serves nothing on this connection, open or not.
   *
   * @returns whether that came within the time
   */
  async isCutOff({ seconds }: { readonly seconds: number }): Promise<boolean> {
    const deadline = Date.now() + seconds * 1_000;
    while (await this.isServed()) {
      if (Date.now() > deadline) return false;
      await Promise.race([this.connection.closed, setTimeout(250)]);
    }
    return true;
  }

  /** Calls a method once. */
  async callOnce(method: string, params: JsonObject): Promise<RelayResponse> {
    this.#lastId += 1;
    const id = this.#lastId;
    const text = await this.exchange(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return readRelayResponse(text, id);
  }

  /** Calls a method and asserts success; returns the result. */
  async expectResult(method: string, params: JsonObject): Promise<JsonObject> {
    const response = await this.call(method, params);
    const found = response.kind === 'refused' ? response.code : response.kind;
    assertConforms(response.kind === 'result', `${method} succeeds, not ${found}`);
    return response.value as JsonObject;
  }

  /** Calls a method and asserts one of the error codes. */
  async expectRefused(
    call: { readonly method: string; readonly params: JsonObject; readonly what?: string },
    ...codes: readonly string[]
  ): Promise<void> {
    const { method, params, what } = call;
    const response = await this.call(method, params);
    const found = response.kind === 'refused' ? response.code : response.kind;
    const expected = `${method}${what === undefined ? '' : ` with ${what}`} is ${codes.join(' or ')}`;
    assertConforms(codes.includes(found), `${expected}, not ${found}`);
  }

  /** Sends one frame of relay RPC; returns the text of the one frame that comes back. */
  async exchange(request: string | Uint8Array): Promise<string> {
    const frame = encodeFrame(typeof request === 'string' ? utf8(request) : request);
    const result = await this.send(this.protocols.rpc, frame);
    assertConforms(result.kind === 'frame', `a request is answered, not ${result.kind}`);
    return Buffer.from(result.frame).toString();
  }

  /** Sends a notification, and asserts that nothing comes back; it was processed then. */
  async notify(text: string): Promise<void> {
    const { kind } = await this.send(this.protocols.rpc, encodeFrame(utf8(text)));
    assertConforms(kind !== 'frame', 'a notification gets no answer');
  }

  /**
   * Writes bytes to a new stream, and ends this side unless told otherwise.
   *
   * @returns the first thing that comes back
   */
  async send(
    protocol: string,
    bytes: Uint8Array,
    { end = true }: { readonly end?: boolean } = {},
  ): Promise<StreamResult> {
    return await this.withStream(protocol, async (stream) => {
      await stream.write(bytes);
      if (end) stream.end();
      return await nextFrame(stream);
    });
  }

  /** Uses a new stream; an error of the stream is its reset. */
  async withStream<T>(
    protocol: string,
    use: (stream: PeerStream) => Promise<T>,
  ): Promise<T | { readonly kind: 'reset' }> {
    const reason = new Violation(`an answer or the end of a stream within ${answerTime / 1_000} s`);
    const timer = new AbortController();
    const timeout = setTimeout(answerTime, undefined, { signal: timer.signal }).then(
      () => {
        throw reason;
      },
      () => new Promise<never>(() => {}),
    );
    const opened = new AbortController();
    const work = this.connection.openStream(protocol, { signal: opened.signal }).then(use);
    try {
      return await Promise.race([work, timeout]);
    } catch (error) {
      if (error instanceof PeerError || error instanceof FrameError) return { kind: 'reset' };
      throw error;
    } finally {
      timer.abort();
      opened.abort(new PeerError('reset', 'this side is done'));
    }
  }

  /** Asks the relay DHT; `undefined` if the stream ends without an answer. */
  async ask(message: KadMessage): Promise<KadMessage | undefined> {
    const frame = encodeFrame(encodeKadMessage(message));
    const result = await this.send(this.protocols.dht, frame);
    return result.kind === 'frame' ? decodeKadMessage(result.frame, bounds) : undefined;
  }

  /** Reads the route of an account as the relay has it; `undefined` if the answer has no record. */
  async getRoute(account: string): Promise<string | undefined> {
    const key = deriveRouteKey(this.#network, account);
    const reply = await this.ask({ type: kadTypes.getValue, key });
    assertConforms(reply !== undefined, 'GET_VALUE is answered');
    assertEqual(reply.type, kadTypes.getValue, 'type of the answer to GET_VALUE');
    assertConforms(isSame(reply.key, key), 'the answer to GET_VALUE has the key of the request');
    if (reply.record === undefined) return undefined;
    assertConforms(isSame(reply.record.key, key), 'the record has the key of the request');
    return Buffer.from(reply.record.value ?? []).toString();
  }

  /** Sends a route; returns whether the relay says that it is stored. */
  async putRoute(route: JsonObject & { readonly account: string }): Promise<boolean> {
    const record = recordOf(this.#network, route);
    const { key } = record;
    const reply = await this.ask({ type: kadTypes.putValue, key, record });
    if (reply?.record === undefined) return false;
    const { record: echo } = reply;
    const isExact = isSame(echo.key, key) && isSame(echo.value, record.value);
    assertConforms(isExact, 'an echoed record is the one that was sent, byte for byte');
    return true;
  }

  /** Sends a route and asserts that it is stored. */
  async storeRoute(route: FinalRoute): Promise<void> {
    assertConforms(await this.putRoute(route), 'PUT_VALUE of a valid route is echoed');
  }
}

/** Returns whether the relay sent the same bytes. */
function isSame(found: Uint8Array | undefined, expected: Uint8Array): boolean {
  return found !== undefined && Buffer.compare(found, expected) === 0;
}

/** Reads the next frame, or the end, of a stream. */
export async function nextFrame(stream: PeerStream): Promise<StreamResult> {
  try {
    const frame = await stream.readFrame();
    return frame === undefined ? { kind: 'ended' } : { kind: 'frame', frame };
  } catch (error) {
    if (error instanceof PeerError) return { kind: 'reset' };
    throw error;
  }
}
