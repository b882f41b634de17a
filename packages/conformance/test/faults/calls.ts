/** Replaces the answers of a relay to other relays, and what it makes of theirs. */
import { utf8 } from '@posthouse/protocol';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '@posthouse/protocol/json';
import type { RelayAnswer } from '../../../relay/src/context.ts';
import { encodeResult } from '../../../relay/src/dispatch/encode.ts';
import { RelayDispatcher, type RelayReply } from '../../../relay/src/dispatch/relay-dispatcher.ts';
import { RpcClient } from '../../../relay/src/federation/rpc/client.ts';
import { replace } from './replace.ts';

/** Changes the reply to the frames of other relays. */
export function answeringRpc(
  change: (reply: RelayReply, frame: Uint8Array) => RelayReply | Promise<RelayReply>,
): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        return await change(await original.call(this, frame, peer), frame);
      },
  );
}

/** Changes the response to the requests of a method. */
export function responding(
  method: string,
  change: (response: JsonObject, params: JsonObject) => JsonObject,
): Disposable {
  return answeringRpc((reply, frame) => {
    const request = jsonOf(frame);
    if (request?.method !== method || reply.kind !== 'answer') return reply;
    const response = change(JSON.parse(reply.text), request.params as JsonObject);
    return { kind: 'answer', text: JSON.stringify(response) };
  });
}

export function jsonOf(frame: Uint8Array): JsonObject | undefined {
  try {
    return JSON.parse(Buffer.from(frame).toString());
  } catch {
    return undefined;
  }
}

/** Changes the parameters of the requests of other relays before they are looked at. */
export function requested(method: string, change: (params: JsonObject) => JsonObject): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        const request = jsonOf(frame);
        if (request?.method !== method) return await original.call(this, frame, peer);
        const changed = { ...request, params: change(request.params as JsonObject) };
        return await original.call(this, utf8(JSON.stringify(changed)), peer);
      },
  );
}

export const withoutMember = (name: string) => (params: JsonObject) => {
  const { [name]: _, ...others } = params;
  return others;
};

/** Changes what this relay makes of the answers to its own calls. */
export function calling(
  method: string,
  change: (
    call: () => Promise<RelayAnswer>,
    request: { readonly relayId: string; readonly params: JsonObject },
    again: (params: JsonObject) => Promise<RelayAnswer>,
  ) => Promise<RelayAnswer>,
): Disposable {
  return replace(
    RpcClient.prototype,
    'call',
    (original) =>
      async function (this: RpcClient, relayId, called, params) {
        const again = (other: typeof params) => original.call(this, relayId, called, other);
        if (called !== method) return await again(params);
        const sent = parseJson(encodeResult(params)) as JsonObject;
        return await change(() => again(params), { relayId, params: sent }, again);
      },
  );
}

/** Changes what this relay makes of the answers of one kind to its own calls. */
export function answered<K extends RelayAnswer['kind']>(
  method: string,
  kind: K,
  change: (answer: Extract<RelayAnswer, { readonly kind: K }>) => RelayAnswer,
): Disposable {
  const isOfKind = (one: RelayAnswer): one is Extract<RelayAnswer, { readonly kind: K }> =>
    one.kind === kind;
  return calling(method, async (call) => {
    const answer = await call();
    return isOfKind(answer) ? change(answer) : answer;
  });
}

/** Remembers the first answer about each thing, and gives it for good. */
export function answeringFromMemory(method: string): Disposable {
  const known = new Map<string, JsonValue>();
  return responding(method, (response, params) => {
    const name = canonicalJson(params);
    const first = known.get(name);
    if (first === undefined && response.result !== undefined) {
      known.set(name, response.result as JsonValue);
    }
    if (first === undefined) return response;
    return { jsonrpc: '2.0', id: response.id as JsonValue, result: first };
  });
}
