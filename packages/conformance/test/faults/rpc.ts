/** Faults in the answers to other relays. */
import { utf8 } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { RelayDispatcher } from '../../../relay/src/dispatch/relay-dispatcher.ts';
import {
  answeringFromMemory,
  answeringRpc,
  jsonOf,
  requested,
  responding,
  withoutMember,
} from './calls.ts';
import { replace, type SeededFault } from './replace.ts';
import { servingRpc } from './streams.ts';

export const rpcFaults: readonly SeededFault[] = [
  {
    fault: 'answers device.status from stale rows',
    check: 'rpc.device.status/renewed',
    seed: () => answeringFromMemory('device.status'),
  },
  {
    fault: 'says that each device is active',
    check: 'rpc.device.status/inactive-removed',
    seed: () =>
      responding('device.status', (response) => ({
        ...response,
        result: { status: 'active', expires_at: 4_000_000_000 },
      })),
  },
  {
    fault: 'answers each request with the id 1',
    check: 'rpc.envelope/id-text',
    seed: () => responding('profile.resolve', (response) => ({ ...response, id: 1 })),
  },
  {
    fault: 'answers notifications',
    check: 'rpc.envelope/notification-known',
    seed: () =>
      answeringRpc((reply) => (reply.kind === 'none' ? { kind: 'answer', text: '{}' } : reply)),
  },
  {
    fault: 'answers frames that are no UTF-8',
    check: 'rpc.frames/no-utf8',
    seed: () =>
      answeringRpc((reply) => (reply.kind === 'reset' ? { kind: 'answer', text: '{}' } : reply)),
  },
  {
    fault: 'accepts a second request on a stream',
    check: 'rpc.frames/one-request',
    seed: () =>
      servingRpc(async (stream) => {
        while ((await stream.readFrame()) !== undefined) {
          await stream.writeFrame(utf8('{"jsonrpc":"2.0","id":1,"result":{}}'));
        }
      }),
  },
  {
    fault: 'answers a deliver without storing the message',
    check: 'rpc.message.deliver/accepts-by-grant',
    seed: () =>
      replace(
        RelayDispatcher.prototype,
        'answer',
        (original) =>
          async function (this: RelayDispatcher, frame, peer) {
            const request = jsonOf(frame);
            if (request?.method !== 'message.deliver') {
              return await original.call(this, frame, peer);
            }
            const accepted_at = Math.floor(Date.now() / 1_000);
            const result = { status: 'target_accepted', accepted_at };
            const response = { jsonrpc: '2.0', id: request.id, result };
            return { kind: 'answer', text: JSON.stringify(response) };
          },
      ),
  },
  {
    fault: 'looks only at the message ID of a repeat',
    check: 'rpc.message.deliver/conflict-an-unknown-member',
    seed: () => requested('message.deliver', withoutMember('future')),
  },
  {
    fault: 'forgets that it accepted a message',
    check: 'rpc.message.deliver/retained',
    seed: () =>
      responding('message.deliver', (response) => {
        const accepted_at = Math.floor(Date.now() / 1_000);
        return { ...response, result: { ...(response.result as JsonObject), accepted_at } };
      }),
  },
  {
    fault: 'has no state of an account that removed all its devices',
    check: 'rpc.device.state.resolve/public-no-devices',
    seed: () =>
      responding('device.state.resolve', ({ id = null, ...response }) => {
        const { certificates } = (response.result ?? {}) as JsonObject;
        if (!Array.isArray(certificates) || certificates.length > 0) return { id, ...response };
        return { jsonrpc: '2.0', id, error: { code: -32_010, message: 'no state' } };
      }),
  },
  {
    fault: 'falls back to the public profile if a credential is invalid',
    check: 'rpc.message.deliver/no-fallback',
    seed: () => requested('message.deliver', withoutMember('authorization')),
  },
  {
    fault: 'refuses above a quota with another error',
    check: 'rpc.limits/rate-limited',
    seed: () =>
      responding('device.status', (response) => {
        const { error } = response as { readonly error?: JsonObject };
        if (error?.code !== -32_030) return response;
        return { ...response, error: { ...error, code: -32_031 } };
      }),
  },
];
