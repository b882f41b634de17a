/** What comes back inside an answer is deeper than it came, and must still be lawful (01 J5). */
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
/** Over HTTPS a request may have more depth for its parameters than over WSS. */
const depths = [8, 10, 11, 12, 13, 14, 15];

/** Arrays in arrays, the deepest node `depth` below the outermost. */
function nested(depth: number): JsonValue {
  let value: JsonValue = depth;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

/** Takes it, whatever the depth, or refuses it as `bad_request`; says how much was taken. */
async function sendNested(
  context: TestContext,
  writer: Caller,
  { method, make }: { readonly method: string; readonly make: (deep: JsonValue) => JsonObject },
): Promise<number> {
  let taken = 0;
  for (const depth of depths) {
    const params = make(nested(depth));
    const answer = await writer.call(method, params);
    if (answer.ok) taken += 1;
    else await context.expectError(writer, { method, params }, 'bad_request');
  }
  assertConforms(taken > 0, `${method} takes unknown members that are nested`);
  return taken;
}

const sync = checksOf('message.timeline.sync');
sync.check(
  'deep',
  { source, title: 'shows whatever message.send took without being too deep itself' },
  async (context) => {
    const [from, to] = [await context.testAccount(), await context.testAccount()];
    const writer = await context.deviceSession(from.device, 'https');
    const make = (deep: JsonValue) =>
      changeEnvelope(from.device, grantedMessage(from.device, [to.device]), { deep });
    const taken = await sendNested(context, writer, { method: 'message.send', make });
    const page = await context.expectOk(to.caller, 'message.timeline.sync', { after: -1 });
    assertEqual((page as { items: unknown[] }).items.length, taken, 'everything that was taken');
  },
);

const read = checksOf('channel.read');
read.check(
  'deep',
  { source, title: 'shows whatever channel.post took without being too deep itself' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const writer = await context.deviceSession(owner.device, 'https');
    const make = (deep: JsonValue) => channel.postParams({ body: textBody('deep'), deep });
    const taken = await sendNested(context, writer, { method: 'channel.post', make });
    assertEqual((await readTimeline(channel)).raw.length, 1 + taken, 'everything that was taken');
  },
);

export const messageNestingChecks = sync.list;
export const channelNestingChecks = read.list;
