/** The published requests of relay RPC, sent to a relay as another relay sends them. */
import { utf8 } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import vectors from '../../../protocol/vectors/relay-requests.json' with { type: 'json' };
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

const relay = servedRelay({
  limits: { relayAccountRate: 1_000, relayAccountBurst: 1_000, peerFaults: 1_000 },
});

/**
 * The cases whose outcome is the same in every network. A device ID is bound to the network, so no
 * other one takes the envelopes of the valid deliveries.
 */
const cases = vectors.cases.filter(
  ({ name, expected }) => !(name.startsWith('message.deliver') && 'request' in expected),
);

/** Codes for requests that are refused for what they say, whatever the relay knows. */
const refusals = [-32_700, -32_600, -32_601, -32_602, -32_015];

/** What the relay does with a frame, in the words of the vectors. */
async function outcomeOf(foreign: ForeignRelay, text: string): Promise<object> {
  const stream = await foreign.openRpc();
  await stream.writeFrame(utf8(text));
  stream.end();
  const frame = await stream.readFrame();
  // A notification ends without an answer, also one that is ignored.
  if (frame === undefined) return { answer: undefined };
  const { id, error } = JSON.parse(Buffer.from(frame).toString()) as {
    id: unknown;
    error?: { code: number };
  };
  const code = error?.code;
  return code !== undefined && refusals.includes(code) ? { answer: { code, id } } : { id };
}

test('07 §C3: a relay answers each of the published requests as they say', async () => {
  await using foreign = await ForeignRelay.start(relay);
  const found: [string, object][] = [];
  for (const { name, input } of cases) {
    found.push([name, await outcomeOf(foreign, input.text)]);
  }
  const wanted = cases.map(({ name, expected }) => {
    const { answer, request } = expected as { answer?: object; request?: { id: unknown } };
    return [name, request === undefined ? { answer } : { id: request.id }];
  });
  expect(wanted.length).toBeGreaterThan(90);
  expect(found).toEqual(wanted);
});
