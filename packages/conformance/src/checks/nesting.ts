/** Nested members are one or more levels deeper in an answer, which must stay valid (01 J5). */
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { channelFixture } from '../channels/channel-fixture.ts';
import { textBody } from '../channels/channel-objects.ts';
import { readTimeline } from '../channels/channel-reader.ts';
import { checksOf } from '../check.ts';
import { changeEnvelope, grantedMessage } from '../fixtures/direct-messages.ts';
import type { TestContext } from '../fixtures/test-context.ts';
import type { Caller } from '../transport/caller.ts';

const source = '01 §2.1, J5';
/** Depths around the limit; parameters may be deeper over HTTPS than over WSS. */
const depths = [8, 10, 11, 12, 13, 14, 15];

/** Nests arrays; the deepest value is `depth` levels below the outermost. */
function nested(depth: number): JsonValue {
  let value: JsonValue = depth;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

/** Sends parameters of several depths; each is accepted or `bad_request`. Returns the accepted. */
async function sendNested(
  context: TestContext,
  writer: Caller,
  { method, make }: { readonly method: string; readonly make: (deep: JsonValue) => JsonObject },
): Promise<number> {
  let accepted = 0;
  for (const depth of depths) {
    const params = make(nested(depth));
    const answer = await writer.call(method, params);
    if (answer.ok) accepted += 1;
    else await context.expectError(writer, { method, params }, 'bad_request');
  }
  assertConforms(accepted > 0, `${method} accepts nested unknown members`);
  return accepted;
}

const sync = checksOf('message.timeline.sync');
sync.check(
  'deep',
  { source, title: 'returns every message that was accepted, in answers of valid depth' },
  async (context) => {
    const [from, to] = [await context.testAccount(), await context.testAccount()];
    const writer = await context.deviceSession(from.device, 'https');
    const make = (deep: JsonValue) =>
      changeEnvelope(from.device, grantedMessage(from.device, [to.device]), { deep });
    const accepted = await sendNested(context, writer, { method: 'message.send', make });
    const page = await context.expectOk(to.caller, 'message.timeline.sync', { after: -1 });
    assertEqual(
      (page as { items: unknown[] }).items.length,
      accepted,
      'the number of accepted objects',
    );
  },
);

const read = checksOf('channel.read');
read.check(
  'deep',
  { source, title: 'returns every post that was accepted, in answers of valid depth' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const writer = await context.deviceSession(owner.device, 'https');
    const make = (deep: JsonValue) => channel.postParams({ body: textBody('deep'), deep });
    const accepted = await sendNested(context, writer, { method: 'channel.post', make });
    assertEqual(
      (await readTimeline(channel)).raw.length,
      1 + accepted,
      'the number of accepted objects',
    );
  },
);

export const messageNestingChecks = sync.list;
export const channelNestingChecks = read.list;
