import { errorCodeOfRpc, type MethodDefinition, methods } from '@posthouse/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** 02 §2.1: for one method with the same parameters, both transports say the same. */

let relay: ServedRelay;
let ann: Person;
const sessions = ['none', 'device', 'account'] as const;
const tokens = new Map<string, string>();
const sockets = new Map<string, WebSocketClient>();

beforeAll(async () => {
  relay = await ServedRelay.start();
  ann = await relay.register('ann');
  tokens.set('device', (await relay.logInDevice(ann)).token);
  tokens.set('account', (await relay.logInAccount(ann)).token);
  for (const session of sessions) sockets.set(session, await relay.socket());
  await relay.bindDevice(sockets.get('device') as WebSocketClient, ann.device());
  await relay.bindAccount(sockets.get('account') as WebSocketClient, ann);
});
afterAll(() => relay[Symbol.asyncDispose]());

const unknown = 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo';
/** Parameters that are right for some methods and wrong for the others, each in its own way. */
const params: Readonly<Record<string, () => Record<string, unknown>>> = {
  nothing: () => ({}),
  'an unknown account': () => ({ account: unknown }),
  'the own account': () => ({ account: ann.account }),
  'an account that is none': () => ({ account: 'x' }),
  'a page': () => ({ limit: 1 }),
  'a page of nothing': () => ({ limit: 0 }),
  'a message that was never sent': () => ({ message_id: `msg_${'A'.repeat(22)}` }),
};

const base = Object.values<MethodDefinition>(methods).filter(
  ({ capability, http }) => capability === undefined && http.length > 0,
);

for (const { name, http } of base) {
  for (const session of sessions) {
    test.each(Object.keys(params))(`${name}, session ${session}, with %s`, async (kind) => {
      const given = (params[kind] as () => Record<string, unknown>)();
      const overSocket = await (sockets.get(session) as WebSocketClient).call(name, given);
      const token = tokens.get(session);
      for (const verb of http) {
        const overHttp = await relay
          .http()
          .call(name as 'relay.info', given, { verb, ...(token !== undefined && { token }) });
        const rpc = overSocket.error?.code;
        expect(codeOf(overHttp)).toBe(rpc === undefined ? 'ok' : errorCodeOfRpc(rpc));
      }
    });
  }
}
