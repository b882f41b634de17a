/** Messages of a group (05 §4.12, §13.28). */
import { nodeRandom } from '@posthouse/primitives-node';
import { canonicalJson, encodeBase64url, type JsonObject, newMessageId } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import {
  eventOf,
  messagesOf,
  readChain,
  readEpochSecret,
  readHead,
  textsOf,
  withoutTrace,
} from '../../groups/group-reader.ts';
import { GroupActors } from '../../groups/test-group.ts';

const send = checksOf('group.message.send');
const method = 'group.message.send';

/** Sends an envelope; says its sequence. */
async function sent(stage: Stage, by: Pick<Resident, 'caller'>, envelope: JsonObject) {
  const answer = (await stage.succeed(by.caller, method, envelope)) as JsonObject;
  return Number(answer.sequence);
}

send.check(
  'readable',
  { source: '05 §13.28, §14.2', title: 'every member decrypts what each of them sends' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 2 });
    const [ben] = members as [Resident];
    const laptop = at(ben, 1);
    await readChain(group, laptop);
    const secret = await readEpochSecret(group, owner);
    await sent(stage, owner, group.sealed(owner, secret, 'from ann'));
    await sent(stage, ben, group.sealed(ben, await readEpochSecret(group, ben), 'from ben'));
    await sent(stage, laptop, group.sealed(laptop, secret, 'from his laptop'));
    for (const by of [owner, ben, laptop]) {
      const texts = textsOf(stage, await readChain(group, by), await readEpochSecret(group, by));
      demand(texts.join() === 'from ann,from ben,from his laptop', 'all three texts');
    }
  },
);

send.check(
  'event',
  { source: '05 §4.3, §13.28', title: 'appends the envelope unchanged, in its epoch' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    await readChain(group, laptop);
    const before = await readHead(group, owner);
    const envelope = group.message(laptop, 0, { prev_hash: 'mine', from: 'nobody', note: [1] });
    const sequence = await sent(stage, laptop, envelope);
    const chain = await readChain(group, owner);
    const event = eventOf(chain.outcomes.at(-1) as (typeof chain.outcomes)[0]);
    demand(event.sequence === sequence && sequence > before.sequence, 'its sequence');
    demand(canonicalJson(event.payload) === canonicalJson(envelope), 'unchanged');
    demand(event.epoch === before.epoch, 'the epoch is the same');
    demand(event.signer_device_id === laptop.device.id, 'signed by the device that sent it');
    demand(chain.state.head === group.head, 'the head of the chain is the same');
  },
);

send.check(
  'epoch',
  { source: '05 §13.28', title: 'is state_conflict in any other epoch than the current one' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { members: 1 });
    const { epoch } = await readHead(group, owner);
    await withoutTrace(group, owner, () =>
      refusesAll({ by: owner, method, codes: ['state_conflict'] }, [
        ['the epoch before', group.message(owner, epoch - 1)],
        ['an epoch to come', group.message(owner, epoch + 1)],
      ]),
    );
    await group.send(owner, epoch);
  },
);

send.check(
  'repeat',
  { source: '05 §13.28', title: 'an identical repeat gets the first sequence and adds nothing' },
  async (stage) => {
    const { group, owner, strangers } = await sceneOf(stage, { strangers: 1 });
    const envelope = group.message(owner, 0);
    const sequence = await sent(stage, owner, envelope);
    const other = await stage.member(owner.device, stage.otherTransport);
    for (const caller of [owner.caller, other]) {
      demand((await sent(stage, { caller }, envelope)) === sequence, 'the same sequence');
    }
    await group.admit(...strangers);
    demand((await sent(stage, owner, envelope)) === sequence, 'also when the epoch has moved');
    const chain = await readChain(group, owner);
    demand(messagesOf(chain).join() === `${sequence}`, 'one message');
  },
);

send.check(
  'at-once',
  { source: '05 §13.28', title: 'the same message several times at once is one' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const envelope = group.message(owner, 0);
    const sequences = await Promise.all(
      Array.from({ length: 6 }, () => sent(stage, owner, envelope)),
    );
    demand(new Set(sequences).size === 1, 'one sequence');
    demand(messagesOf(await readChain(group, owner)).length === 1, 'one event');
  },
);

send.check(
  'together',
  { source: '05 §11.1', title: 'messages of several members at once get a sequence each' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 2 });
    const people = [owner, ...members, owner, ...members];
    const sequences = await Promise.all(people.map((by) => group.send(by, 1)));
    const read = messagesOf(await readChain(group, owner));
    demand(read.join() === sequences.sort((a, b) => a - b).join(), 'all of them, each once');
  },
);

send.check(
  'conflict',
  { source: '05 §13.28', title: 'the same ID with any other envelope is state_conflict' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    const envelope = group.message(owner, 0);
    const sequence = await sent(stage, owner, envelope);
    const { message_id } = envelope;
    const second = await GroupActors.found(stage, owner);
    const other = await sceneOf(stage);
    const again = (facts: JsonObject) => group.sign({ ...envelope, ...facts }, owner);
    const calls = [
      ['another time', again({ created_at: Number(envelope.created_at) - 1 })],
      ['another text', group.message(owner, 0, { message_id: String(message_id) })],
      ['a member more', again({ note: 1 })],
      ['another group', second.message(owner, 0, { message_id: String(message_id) })],
    ] as const;
    const codes = ['state_conflict'] as const;
    await withoutTrace(group, owner, async () => {
      await refusesAll({ by: owner, method, codes }, calls);
      const byLaptop = group.sign(envelope, laptop);
      await refusesAll({ by: laptop, method, codes }, [['another device', byLaptop]]);
    });
    demand((await sent(stage, owner, envelope)) === sequence, 'the first result stands');
    const theirs = other.group.message(other.owner, 0, { message_id: String(message_id) });
    await sent(stage, other.owner, theirs);
  },
);

send.check(
  'rights-of-a-repeat',
  { source: '05 §13.28', title: 'a repeat is judged by present rights' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const [his, ours] = [group.message(ben, 1), group.message(owner, 1)];
    await sent(stage, ben, his);
    await sent(stage, owner, ours);
    await group.remove([ben]);
    await stage.fail(ben.caller, { method, params: his }, 'forbidden');
    await group.close();
    await stage.fail(owner.caller, { method, params: ours }, 'state_conflict');
  },
);

send.check(
  'clock',
  { source: '05 §12.4, §13.28', title: 'is clock_skew when made in another time' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const now = unixSeconds();
    await refusesAll({ by: owner, method, codes: ['clock_skew'] }, [
      ['a time long ago', group.message(owner, 0, { created_at: now - 31_536_000 })],
      ['a time far ahead', group.message(owner, 0, { created_at: now + 31_536_000 })],
    ]);
    demand(messagesOf(await readChain(group, owner)).length === 0, 'no message');
  },
);

for (const bytes of [262_144, 262_145]) {
  send.check(
    `envelope-${bytes}`,
    {
      source: '05 §4.12',
      title: `an envelope of ${bytes} bytes ${bytes > 262_144 ? 'is request_too_large' : 'fits'}`,
    },
    async (stage) => {
      const { group, owner } = await sceneOf(stage);
      const message_id = newMessageId(nodeRandom);
      const filled = (note: string) => group.message(owner, 0, { message_id, note });
      const note = 'x'.repeat(bytes - canonicalJson(filled('')).length);
      const params = filled(note);
      if (bytes > 262_144) {
        await stage.fail(owner.caller, { method, params }, 'request_too_large');
      } else {
        await sent(stage, owner, params);
        const { outcomes } = await readChain(group, owner);
        const event = eventOf(outcomes.at(-1) as (typeof outcomes)[0]);
        demand((event.payload as JsonObject).note === note, 'and is read back whole');
      }
    },
  );
}

send.check(
  'payload',
  { source: '05 §4.12', title: 'refuses a payload that cannot be one' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
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
    await refusesAll({ by: owner, method, codes: ['bad_request'] }, calls);
  },
);

send.check(
  'blind',
  { source: '05 §13.28', title: 'takes what it cannot read, and readers set it aside' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    await group.send(owner, 0);
    const secret = await readEpochSecret(group, owner);
    await sent(stage, owner, group.sealed(owner, secret, 'behind it'));
    const texts = textsOf(stage, await readChain(group, owner), secret);
    demand(texts[0] === undefined && texts[1] === 'behind it', 'the one does not open');
  },
);

export const groupMessageChecks = send.list;
