/** The end of a channel (06 §7.4, §8.5). */
import type { JsonObject } from '@posthouse/protocol';
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
import { postUntil } from '../../channels/post-until-refused.ts';
import type { ChannelActors } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';

const close = checksOf('channel.close');
const method = 'channel.close';

/** The parameters of a close request whose signature is over this descriptor. */
function signedOver(descriptor: JsonObject): JsonObject {
  const { channel_id, revision, updated_at, device_signature } = descriptor;
  return { channel_id, revision, updated_at, device_signature };
}

/** Demands that the channel is closed and its last event says so. */
async function demandClosed(channel: ChannelActors): Promise<void> {
  const { payload, descriptor_rev } = await lastEvent(channel);
  demand(equal(payload, channel.current), 'the event is the final descriptor');
  demand(descriptor_rev === channel.revision, 'of its own revision');
  const resolved = await resolveChannel(channel, channel.owner);
  demand(resolved.status === 'closed' && equal(resolved, channel.current), 'it is the current one');
}

close.check(
  'final',
  { source: '06 §8.5', title: 'appends the current descriptor, closed, with everything it had' },
  async (stage) => {
    const facts = { description: 'words', theme: { of: [1, { two: '3' }] }, moderators: [] };
    const { channel, owner } = await channelSceneOf(stage, { facts, devices: 2 });
    await channel.update({ later: true });
    const { raw } = await readTimeline(channel);
    await channel.close(at(owner, 1));
    await demandClosed(channel);
    const after = await readTimeline(channel);
    demand(after.raw.length === raw.length + 1, 'one event more');
    demand(equal(after.raw.slice(0, -1), raw), 'the others are as they were');
    const last = after.raw.at(-1);
    demand(last?.signer_device_id === at(owner, 1).device.id, 'signed by the device that called');
    for (const name of ['description', 'theme', 'moderators', 'later']) {
      demand(Object.hasOwn(channel.current, name), `${name} stays`);
    }
  },
);

close.check(
  'not-mapped',
  { source: '06 §8.5', title: 'maps no other property of the request into the descriptor' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const final = channel.final();
    const more = { name: 'Another', description: 'more', status: 'active', future: [1] };
    await stage.succeed(owner.caller, method, { ...more, ...signedOver(final) });
    channel.current = final;
    await demandClosed(channel);
  },
);

close.check(
  'signature',
  {
    source: '06 §8.5 step 5',
    title: 'is invalid_signature unless it is over the final descriptor',
  },
  async (stage) => {
    const facts = { description: 'words', theme: 'dark' };
    const { channel, owner } = await channelSceneOf(stage, { devices: 2, facts });
    const params = channel.closing();
    const over = (changes: JsonObject) => signedOver(channel.final(changes));
    const changed = { ...params, updated_at: Number(params.updated_at) - 1 };
    const request = channel.sign(params);
    const wrong: Readonly<Record<string, JsonObject>> = {
      'bit flipped': { ...params, device_signature: flipped(String(params.device_signature)) },
      'another time than was signed': changed,
      'over the request': request,
      'over an active descriptor': over({ status: 'active' }),
      'over another name': over({ name: 'Another' }),
      'without an unknown member': over({ theme: undefined }),
      'without the description': over({ description: undefined }),
      'with a list that is not there': over({ moderators: [] }),
      'by the other device': signedOver(channel.final({}, at(owner, 1))),
      'by another account': signedOver(
        channel.final({}, { device: await stage.account().device() }),
      ),
    };
    const refused = { by: owner, method, codes: ['invalid_signature'] } as const;
    await withoutTrace(channel, () => refusesAll(refused, Object.entries(wrong)));
    await stage.succeed(owner.caller, method, params);
  },
);

close.check(
  'revision',
  { source: '06 §8.5 step 3', title: 'is state_conflict for any revision but the next one' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    await channel.update({ name: 'second' });
    const calls = [0, 1, 3, Number.MAX_SAFE_INTEGER].map((revision) => {
      return [`revision ${revision}`, channel.closing({ revision })] as const;
    });
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['state_conflict'] }, calls),
    );
    await channel.close();
  },
);

close.check(
  'clock',
  { source: '06 §8.5 step 4', title: 'is clock_skew when signed in another time' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const now = unixSeconds();
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['clock_skew'] }, [
        ['a time long ago', channel.closing({ updated_at: now - 31_536_000 })],
        ['a time far ahead', channel.closing({ updated_at: now + 31_536_000 })],
      ]),
    );
    await channel.close();
  },
);

close.check(
  'order',
  { source: '06 §8.5', title: 'looks at its checks in the order of their list' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 1 });
    const [mia] = moderators as [Resident];
    const spoiled = (facts: JsonObject, by = owner) => {
      const params = channel.closing(facts, by);
      return { ...params, device_signature: flipped(String(params.device_signature)) };
    };
    const old = { updated_at: 0 };
    const cases = [
      [mia, 'bad_request', 'form', { ...channel.closing({}, mia), device_signature: 'short' }],
      [mia, 'forbidden', 'permission before signature', spoiled({}, mia)],
      [mia, 'forbidden', 'permission before revision', channel.closing({ revision: 7 }, mia)],
      [owner, 'state_conflict', 'revision before clock', spoiled({ ...old, revision: 7 })],
      [owner, 'clock_skew', 'clock before signature', spoiled(old)],
    ] as const;
    await withoutTrace(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await refusesAll({ by, method, codes: [code] }, [[what, params]]);
      }
    });
    await channel.close();
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['state_conflict'] }, [
        ['closure before clock', spoiled(old)],
      ]),
    );
  },
);

close.check(
  'inherited-size',
  { source: '06 §8.5 step 6', title: 'is request_too_large where the descriptor would grow over' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    while (channel.revision < 8) await channel.update({});
    // The ninth revision has one digit and as many bytes as fit; the tenth has one more of each.
    await channel.adopt(filledTo(8_192, (filling) => channel.revised({ filling })));
    const call = { method, params: channel.closing() };
    await withoutTrace(channel, () => stage.fail(owner.caller, call, 'request_too_large'));
    await channel.update({ filling: undefined });
    await channel.close();
    await demandClosed(channel);
  },
);

close.check(
  'terminal',
  { source: '06 §7.4', title: 'is the last write of a channel' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 1 });
    const [mia] = moderators as [Resident];
    const target = await channel.post({}, mia);
    const request = channel.closing();
    await channel.close();
    const active = { status: 'active' };
    const writes: readonly (readonly [Resident, string, JsonObject])[] = [
      [owner, method, request],
      [owner, method, channel.closing()],
      [owner, 'channel.update', channel.revised(active)],
      [mia, 'channel.post', channel.publication({}, mia)],
      [mia, 'channel.post.edit', channel.patch(target, { body: null, x: 1 }, mia)],
      [mia, 'channel.post.edit', channel.patch(target, { x: 1 }, mia)],
      [mia, 'channel.post.delete', channel.deletion(target, {}, mia)],
    ];
    await withoutTrace(channel, async () => {
      for (const [by, called, params] of writes) {
        await stage.fail(by.caller, { method: called, params }, 'state_conflict');
      }
    });
    await demandClosed(channel);
  },
);

close.check(
  'at-once',
  { source: '06 §7.2, §8.5', title: 'of an update and closes of one revision, one succeeds' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage, { devices: 2 });
    const drafts = [owner, at(owner, 1), owner, at(owner, 1)].map((by, index) => {
      const updated_at = unixSeconds() - index;
      const descriptor =
        index === 2 ? channel.revised({ updated_at }, by) : channel.final({ updated_at }, by);
      return { by, descriptor, closes: index !== 2 };
    });
    const answers = await Promise.all(
      drafts.map(({ by, descriptor, closes }) => {
        return closes
          ? by.caller.call(method, signedOver(descriptor))
          : by.caller.call('channel.update', descriptor);
      }),
    );
    const won = drafts.filter((_, index) => answers[index]?.ok);
    demand(won.length === 1, `one succeeds, not ${won.length}`);
    for (const answer of answers) {
      demand(answer.ok || answer.code === 'state_conflict', 'the others are state_conflict');
    }
    channel.current = (won[0] as (typeof won)[0]).descriptor;
    demand(equal((await lastEvent(channel)).payload, channel.current), 'the one that succeeded');
    demand((await readTimeline(channel)).raw.length === 2, 'one event');
    if (!won[0]?.closes) await channel.close();
    await demandClosed(channel);
  },
);

close.check(
  'with-posts',
  { source: '06 §7.2, §7.4', title: 'nothing that is written at the same time comes behind it' },
  async (stage) => {
    const { channel, moderators } = await channelSceneOf(stage, { moderators: 1, devices: 3 });
    const [mia] = moderators as [Resident];
    const devices = [0, 1, 2].map((index) => at(mia, index));
    const [counts] = await Promise.all([
      Promise.all(devices.map((by) => postUntil(channel, by, 'state_conflict'))),
      channel.close(),
    ]);
    await demandClosed(channel);
    const { state } = await readTimeline(channel);
    const posted = counts.reduce((sum, count) => sum + count, 0);
    demand(state.posts.size === posted, 'those that succeeded are there, and no others');
  },
);

export const channelCloseChecks = close.list;
