/** Messages of a group (05 §4.12, §13.28). */

import { encodeBase64url, newMessageId } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import {
  assertUnchanged,
  eventOf,
  messagesOf,
  readChain,
  readEpochSecret,
  readHead,
  textsOf,
} from '../../groups/group-reader.ts';
import { TestGroup } from '../../groups/test-group.ts';

const send = checksOf('group.message.send');
const method = 'group.message.send';

/** Sends an envelope; returns its sequence. */
async function sent(context: TestContext, by: Pick<TestAccount, 'caller'>, envelope: JsonObject) {
  const answer = (await context.expectOk(by.caller, method, envelope)) as JsonObject;
  return Number(answer.sequence);
}

send.check(
  'readable',
  { source: '05 §13.28, §14.2', title: 'every member decrypts the messages of all members' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const [ben] = members as [TestAccount];
    const laptop = withDevice(ben, 1);
    await readChain(group, laptop);
    const secret = await readEpochSecret(group, owner);
    await sent(context, owner, group.sealedMessage(owner, secret, 'from ann'));
    await sent(
      context,
      ben,
      group.sealedMessage(ben, await readEpochSecret(group, ben), 'from ben'),
    );
    await sent(context, laptop, group.sealedMessage(laptop, secret, 'from his laptop'));
    for (const by of [owner, ben, laptop]) {
      const texts = textsOf(context, await readChain(group, by), await readEpochSecret(group, by));
      assertEqual(texts.join(), 'from ann,from ben,from his laptop', 'the decrypted texts');
    }
  },
);

send.check(
  'event',
  { source: '05 §4.3, §13.28', title: 'appends the envelope unchanged, in its epoch' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    await readChain(group, laptop);
    const before = await readHead(group, owner);
    const envelope = group.message(laptop, 0, { prev_hash: 'mine', from: 'unknown', note: [1] });
    const sequence = await sent(context, laptop, envelope);
    const chain = await readChain(group, owner);
    const event = eventOf(chain.outcomes.at(-1) as (typeof chain.outcomes)[0]);
    assertConforms(
      event.sequence === sequence && sequence > before.sequence,
      'a sequence after the last event',
    );
    assertEqual(event.payload, envelope, 'unchanged');
    assertEqual(event.epoch, before.epoch, 'the epoch is unchanged');
    assertEqual(event.signer_device_id, laptop.device.id, 'the signing device');
    assertEqual(chain.state.head, group.head, 'the head of the chain is the same');
  },
);

send.check(
  'epoch',
  { source: '05 §13.28', title: 'answers state_conflict in any other epoch than the current one' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1 });
    const { epoch } = await readHead(group, owner);
    await assertUnchanged(group, owner, () =>
      assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, [
        ['the previous epoch', group.message(owner, epoch - 1)],
        ['a later epoch', group.message(owner, epoch + 1)],
      ]),
    );
    await group.send(owner, epoch);
  },
);

send.check(
  'repeat',
  {
    source: '05 §13.28',
    title: 'an identical repeat returns the first sequence and appends nothing',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    const envelope = group.message(owner, 0);
    const sequence = await sent(context, owner, envelope);
    const other = await context.deviceSession(owner.device, context.otherTransport);
    for (const caller of [owner.caller, other]) {
      assertEqual(await sent(context, { caller }, envelope), sequence, 'the same sequence');
    }
    await group.admit(...strangers);
    assertEqual(
      await sent(context, owner, envelope),
      sequence,
      'the same sequence in a later epoch',
    );
    const chain = await readChain(group, owner);
    assertEqual(messagesOf(chain).join(), `${sequence}`, 'one message');
  },
);

send.check(
  'at-once',
  { source: '05 §13.28', title: 'several identical concurrent messages are appended once' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const envelope = group.message(owner, 0);
    const sequences = await Promise.all(
      Array.from({ length: 6 }, () => sent(context, owner, envelope)),
    );
    assertEqual(new Set(sequences).size, 1, 'one sequence');
    assertEqual(messagesOf(await readChain(group, owner)).length, 1, 'one event');
  },
);

send.check(
  'together',
  { source: '05 §11.1', title: 'concurrent messages of several members get one sequence each' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 2 });
    const senders = [owner, ...members, owner, ...members];
    const sequences = await Promise.all(senders.map((by) => group.send(by, 1)));
    const read = messagesOf(await readChain(group, owner));
    assertEqual(read.join(), sequences.sort((a, b) => a - b).join(), 'each message once');
  },
);

send.check(
  'conflict',
  { source: '05 §13.28', title: 'the same ID with any other envelope is state_conflict' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    const envelope = group.message(owner, 0);
    const sequence = await sent(context, owner, envelope);
    const { message_id } = envelope;
    const second = await TestGroup.create(context, owner);
    const other = await groupFixture(context);
    const again = (overrides: JsonObject) => group.sign({ ...envelope, ...overrides }, owner);
    const calls = [
      ['another time', again({ created_at: Number(envelope.created_at) - 1 })],
      ['another text', group.message(owner, 0, { message_id: String(message_id) })],
      ['a member more', again({ note: 1 })],
      ['another group', second.message(owner, 0, { message_id: String(message_id) })],
    ] as const;
    const codes = ['state_conflict'] as const;
    await assertUnchanged(group, owner, async () => {
      await assertAllRefused({ by: owner, method, codes }, calls);
      const byLaptop = group.sign(envelope, laptop);
      await assertAllRefused({ by: laptop, method, codes }, [['another device', byLaptop]]);
    });
    assertEqual(
      await sent(context, owner, envelope),
      sequence,
      'the sequence of the first message',
    );
    const theirs = other.group.message(other.owner, 0, { message_id: String(message_id) });
    await sent(context, other.owner, theirs);
  },
);

send.check(
  'rights-of-a-repeat',
  { source: '05 §13.28', title: 'a repeat needs the right at the time of the repeat' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const [his, ours] = [group.message(ben, 1), group.message(owner, 1)];
    await sent(context, ben, his);
    await sent(context, owner, ours);
    await group.remove([ben]);
    await context.expectError(ben.caller, { method, params: his }, 'forbidden');
    await group.close();
    await context.expectError(owner.caller, { method, params: ours }, 'state_conflict');
  },
);

send.check(
  'clock',
  { source: '05 §12.4, §13.28', title: 'answers clock_skew if the time of the message is far off' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const now = unixSeconds();
    await assertAllRefused({ by: owner, method, codes: ['clock_skew'] }, [
      ['a time long ago', group.message(owner, 0, { created_at: now - 31_536_000 })],
      ['a time far ahead', group.message(owner, 0, { created_at: now + 31_536_000 })],
    ]);
    assertEqual(messagesOf(await readChain(group, owner)).length, 0, 'no message');
  },
);

for (const bytes of [262_144, 262_145]) {
  send.check(
    `envelope-${bytes}`,
    {
      source: '05 §4.12',
      title: `an envelope of ${bytes} bytes ${bytes > 262_144 ? 'is request_too_large' : 'fits'}`,
    },
    async (context) => {
      const { group, owner } = await groupFixture(context);
      const message_id = newMessageId(nodeRandom);
      const filled = (note: string) => group.message(owner, 0, { message_id, note });
      const note = 'x'.repeat(bytes - canonicalJson(filled('')).length);
      const params = filled(note);
      if (bytes > 262_144) {
        await context.expectError(owner.caller, { method, params }, 'request_too_large');
      } else {
        await sent(context, owner, params);
        const { outcomes } = await readChain(group, owner);
        const event = eventOf(outcomes.at(-1) as (typeof outcomes)[0]);
        assertEqual((event.payload as JsonObject).note, note, 'the message is returned unchanged');
      }
    },
  );
}

send.check(
  'payload',
  { source: '05 §4.12', title: 'refuses a malformed payload' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const { payload } = group.message(owner, 0) as { readonly payload: JsonObject };
    const wrong: Readonly<Record<string, JsonObject>> = {
      'another algorithm': { ...payload, alg: 'AES-128-GCM' },
      'a nonce of 11 bytes': { ...payload, nonce: encodeBase64url(nodeRandom(11)) },
      'no room for the tag': { ...payload, ciphertext: encodeBase64url(nodeRandom(15)) },
      'an empty ciphertext': { ...payload, ciphertext: '' },
    };
    const calls = Object.entries(wrong).map(([what, other]) => {
      return [what, group.message(owner, 0, { payload: other })] as const;
    });
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
  },
);

send.check(
  'blind',
  {
    source: '05 §13.28',
    title: 'accepts messages that cannot be decrypted, and readers skip them',
  },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await group.send(owner, 0);
    const secret = await readEpochSecret(group, owner);
    await sent(context, owner, group.sealedMessage(owner, secret, 'after it'));
    const texts = textsOf(context, await readChain(group, owner), secret);
    assertConforms(
      texts[0] === undefined && texts[1] === 'after it',
      'the first does not open, the second does',
    );
  },
);

export const groupMessageChecks = send.list;
