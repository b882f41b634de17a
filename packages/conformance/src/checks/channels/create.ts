/** Creation of channels (06 §3, §4, §8.2). */
import { nodeRandom } from '@posthouse/primitives-node';
import { encodeBase64url, type JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { filledTo } from '../../channels/channel-objects.ts';
import {
  equal,
  lastEvent,
  readTimeline,
  resolveChannel,
  withoutTrace,
} from '../../channels/channel-reader.ts';
import { rightFields, wrongFields } from '../../channels/descriptor-fields.ts';
import { ChannelActors } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { relayTime } from '../../fixtures/relay-info.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at, residents } from '../../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../../fixtures/test-context.ts';

const create = checksOf('channel.create');
const method = 'channel.create';

/** Demands that a channel is not there. */
async function absent(stage: Stage, { channelId, owner }: ChannelActors): Promise<void> {
  const params = { channel_id: channelId };
  await stage.fail(owner.caller, { method: 'channel.resolve', params }, 'not_found');
  await stage.fail(owner.caller, { method: 'channel.read', params }, 'not_found');
}

/** Demands that every one of these creations is refused and leaves no channel. */
async function refused(
  stage: Stage,
  codes: Parameters<typeof refusesAll>[0]['codes'],
  drafts: Readonly<Record<string, ChannelActors>>,
): Promise<void> {
  for (const [what, draft] of Object.entries(drafts)) {
    await refusesAll({ by: draft.owner, method, codes }, [[what, draft.creation]]);
    await absent(stage, draft);
  }
}

create.check(
  'founds',
  { source: '06 §8.2, §5', title: 'founds a channel whose first event is its descriptor' },
  async (stage) => {
    const before = await relayTime(stage);
    const { channel, owner, readers } = await channelSceneOf(stage, { readers: 1, devices: 2 });
    const [rea] = readers as [Resident];
    for (const by of [owner, at(owner, 1), rea]) {
      const { raw } = await readTimeline(channel, by);
      const [event] = raw;
      demand(raw.length === 1 && event !== undefined, 'one event');
      demand(event.sequence === 0 && event.descriptor_rev === 0, 'at 0, of revision 0');
      demand(event.signer_device_id === owner.device.id, 'signed by the device that called');
      demand(equal(event.payload, channel.creation), 'the descriptor as it was sent');
      const late = await relayTime(stage);
      demand(event.accepted_at >= before && event.accepted_at <= late, "the host's time");
      demand(
        equal(await resolveChannel(channel, by), channel.creation),
        'which is the current one',
      );
    }
  },
);

create.check(
  'fields',
  { source: '06 §4', title: 'takes every field up to its limits and keeps it as it came' },
  async (stage) => {
    const owner = await stage.resident();
    const more: Record<string, JsonObject> = {
      'nothing optional': {},
      'members it does not know': {
        theme: { colours: ['red', { shade: -1 }], on: true },
        constructor: 'x',
        ...(JSON.parse('{"__proto__": {"moderators": []}}') as JsonObject),
      },
    };
    for (const [what, facts] of Object.entries({ ...rightFields(stage), ...more })) {
      const channel = await ChannelActors.found(stage, owner, facts);
      const { payload } = await lastEvent(channel);
      demand(equal(payload, channel.creation), `${what}: the event`);
      demand(equal(await resolveChannel(channel, owner), channel.creation), `${what}: resolved`);
    }
  },
);

create.check(
  'wrong-fields',
  { source: '06 §4', title: 'refuses fields beyond their limits, and no channel comes of it' },
  async (stage) => {
    const owner = await stage.resident();
    const drafts = Object.entries(wrongFields(stage, owner.account.id)).map(
      ([what, facts]) => [what, ChannelActors.draft(stage, owner, facts)] as const,
    );
    const calls = drafts.map(([what, { creation }]) => [what, creation] as const);
    await refusesAll({ by: owner, method, codes: ['bad_request'] }, calls);
    for (const [what, draft] of drafts) if (!/nonce/.test(what)) await absent(stage, draft);
  },
);

create.check(
  'initial',
  {
    source: '06 §3, §8.2 step 5',
    title: 'refuses what revision 0 cannot be, or another ID or host',
  },
  async (stage) => {
    const owner = await stage.resident();
    const draft = (facts: JsonObject) => ChannelActors.draft(stage, owner, facts);
    const { channelId } = draft({});
    await refused(stage, ['bad_request'], {
      'revision 1': draft({ revision: 1 }),
      'the final status': draft({ status: 'closed' }),
      'other times': draft({ updated_at: unixSeconds() + 1 }),
      'another relay': draft({ relay_id: `0x${'5a'.repeat(20)}` }),
      'the ID of another nonce': draft({ channel_id: channelId }),
      'any ID': draft({ channel_id: `chan_${encodeBase64url(nodeRandom(16))}` }),
    });
  },
);

create.check(
  'creator',
  { source: '06 §8.2 step 3', title: 'is forbidden to found a channel in the name of others' },
  async (stage) => {
    const [owner, eve] = (await residents(stage, 2)) as [Resident, Resident];
    const named = ChannelActors.draft(stage, eve, { creator: owner.account.id });
    const theirs = ChannelActors.draft(stage, owner);
    await refusesAll({ by: eve, method, codes: ['forbidden'] }, [
      ['a creator who does not call', named.creation],
      ['a descriptor that its creator signed', theirs.creation],
    ]);
    await absent(stage, named);
    await absent(stage, theirs);
  },
);

create.check(
  'again',
  {
    source: '06 §8.2 step 7',
    title: 'is state_conflict for an ID that is there, identical or not',
  },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage, { devices: 2 });
    const { nonce } = channel.creation;
    const laptop = at(owner, 1);
    const other = await stage.member(owner.device, stage.otherTransport);
    await withoutTrace(channel, async () => {
      const same = { method, params: channel.creation };
      for (const caller of [owner.caller, other]) await stage.fail(caller, same, 'state_conflict');
      const facts = { nonce: String(nonce), name: 'Another name' };
      await refusesAll({ by: owner, method, codes: ['state_conflict'] }, [
        ['another name', ChannelActors.draft(stage, owner, facts).creation],
      ]);
      const byLaptop = channel.sign(channel.creation, laptop);
      await stage.fail(laptop.caller, { method, params: byLaptop }, 'state_conflict');
    });
    await channel.update({ name: 'Later' });
    await channel.close();
    await withoutTrace(channel, () =>
      stage.fail(owner.caller, { method, params: channel.creation }, 'state_conflict'),
    );
  },
);

create.check(
  'nonce-of-others',
  { source: '06 §3', title: 'takes a nonce that another account has used' },
  async (stage) => {
    const { channel, readers } = await channelSceneOf(stage, { readers: 1 });
    const [rea] = readers as [Resident];
    const nonce = String(channel.creation.nonce);
    const second = await ChannelActors.found(stage, rea, { nonce });
    demand(second.channelId !== channel.channelId, 'it is another channel');
    demand((await readTimeline(second)).raw.length === 1, 'with a timeline of its own');
  },
);

create.check(
  'at-once',
  { source: '06 §7.2, §8.2', title: 'the same creation several times at once founds one channel' },
  async (stage) => {
    const owner = await stage.resident();
    const draft = ChannelActors.draft(stage, owner);
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => owner.caller.call(method, draft.creation)),
    );
    const won = answers.filter(({ ok }) => ok);
    demand(won.length === 1, `one succeeds, not ${won.length}`);
    for (const answer of answers) {
      demand(answer.ok || answer.code === 'state_conflict', 'the others are state_conflict');
    }
    demand((await readTimeline(draft)).raw.length === 1, 'one event');
  },
);

create.check(
  'clock',
  { source: '06 §8.2 step 8', title: 'is clock_skew when signed in another time' },
  async (stage) => {
    const owner = await stage.resident();
    const now = unixSeconds();
    const dated = (time: number) =>
      ChannelActors.draft(stage, owner, { created_at: time, updated_at: time });
    await refused(stage, ['clock_skew'], {
      'a time long ago': dated(now - 31_536_000),
      'a time far ahead': dated(now + 31_536_000),
      'the beginning of time': dated(0),
    });
  },
);

create.check(
  'order',
  { source: '06 §8.2', title: 'looks at its checks in the order of their list' },
  async (stage) => {
    const { channel, owner, readers } = await channelSceneOf(stage, { readers: 1 });
    const [eve] = readers as [Resident];
    const draft = (facts: JsonObject, by = owner) => ChannelActors.draft(stage, by, facts);
    const spoiled = ({ creation }: ChannelActors) => {
      return { ...creation, device_signature: flipped(String(creation.device_signature)) };
    };
    const old = { created_at: 0, updated_at: 0 };
    const make = (facts: JsonObject) => (filling: string) => draft({ ...facts, filling }).creation;
    const nonce = String(channel.creation.nonce);
    const cases = [
      ['bad_request', 'form before identity', draft({ creator: eve.account.id, name: '' })],
      ['forbidden', 'identity before signature', spoiled(draft({ creator: eve.account.id }))],
      ['invalid_signature', 'signature before revision', spoiled(draft({ revision: 1 }))],
      ['bad_request', 'revision before size', filledTo(8_193, make({ revision: 1 }))],
      ['request_too_large', 'size before existence', filledTo(8_193, make({ nonce, ...old }))],
      ['state_conflict', 'existence before clock', draft({ nonce, ...old })],
    ] as const;
    for (const [code, what, of] of cases) {
      const params = of instanceof ChannelActors ? of.creation : of;
      await refusesAll({ by: owner, method, codes: [code] }, [[what, params]]);
    }
  },
);

export const channelCreateChecks = create.list;
