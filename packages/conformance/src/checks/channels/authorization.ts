/** Who may call the channel methods, and of which channels (06 §1, §7.4, §8). */

import { type ChannelMethodName, readyForChannel, recipes } from '../../channels/channel-calls.ts';
import { withoutTrace } from '../../channels/channel-reader.ts';
import { ChannelActors } from '../../channels/test-channel.ts';
import { type Check, checksOf } from '../../check.ts';
import { at, keepDevices } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';

/** The checks of a method's gate. */
function gateChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { allowed, writes } = recipes[method];
  const transports =
    method === 'channel.subscribe' ? (['wss'] as const) : (['https', 'wss'] as const);

  if (method !== 'channel.create') {
    check(
      'unknown-channel',
      {
        source: '06 §8',
        title: 'is not_found for a channel that is not here, whoever asks',
        transports,
      },
      async (stage) => {
        const { by, params, again, scene } = await readyForChannel(stage, method, { readers: 1 });
        const [rea] = scene.readers as [Resident];
        for (const person of [by, rea]) {
          const channel = ChannelActors.draft(stage, by);
          const call = { method, params: again({ by: person, channel }) };
          await stage.fail(person.caller, call, 'not_found');
        }
        await stage.succeed(by.caller, method, params);
      },
    );
  }

  check(
    'roles',
    {
      source: '06 §1, §8',
      title:
        allowed === 'readers'
          ? 'serves any device session'
          : `serves ${allowed === 'owner' ? 'the owner' : 'owner and moderators'}, and is forbidden to others`,
      transports,
    },
    async (stage) => {
      const ready = await readyForChannel(stage, method, { moderators: 1, readers: 1, devices: 2 });
      const { again, by, scene } = ready;
      const [mia, rea] = [...scene.moderators, ...scene.readers] as [Resident, Resident];
      const others = allowed === 'readers' ? [] : [rea, at(rea, 1)];
      if (allowed === 'owner') others.push(mia, at(mia, 1));
      for (const person of others) {
        const call = { method, params: again({ by: person }) };
        await withoutTrace(scene.channel, () => stage.fail(person.caller, call, 'forbidden'));
      }
      if (allowed !== 'owner') {
        const person = allowed === 'readers' ? rea : mia;
        const { channel } = scene;
        const target = recipes[method].targets ? await channel.post() : 1;
        const params = recipes[method].build({ channel, by: person, target });
        await stage.succeed(person.caller, method, params);
      }
      // Whichever device of the account it is (06 §4).
      const laptop = at(by, 1);
      await stage.succeed(laptop.caller, method, again({ by: laptop }));
    },
  );

  check(
    'closed',
    {
      source: '06 §7.4, §9.1',
      title: writes
        ? 'is state_conflict once the channel is closed, bad_request where malformed'
        : 'is served as before once the channel is closed',
      transports,
    },
    async (stage) => {
      const { again, by, scene } = await readyForChannel(stage, method);
      await scene.channel.close();
      const params = again();
      if (!writes) {
        await stage.succeed(by.caller, method, params);
        return;
      }
      const malformed = { ...params, device_signature: 'short' };
      await withoutTrace(scene.channel, async () => {
        await stage.fail(by.caller, { method, params }, 'state_conflict');
        await stage.fail(by.caller, { method, params: malformed }, 'bad_request');
      });
    },
  );

  if (recipes[method].signed) {
    check(
      'removed-device',
      { source: '06 §8.1, §8.6', title: 'refuses a device that the account has removed' },
      async (stage) => {
        const { again, by, scene } = await readyForChannel(stage, method, { devices: 2 });
        const laptop = at(by, 1);
        await keepDevices(stage, by, [by.device]);
        const call = { method, params: again({ by: laptop }) };
        await withoutTrace(scene.channel, () => stage.fail(laptop.caller, call, 'unauthorized'));
        await stage.succeed(by.caller, method, again());
      },
    );
  }
  return list;
}

export const channelGateChecks: readonly Check[] = (
  Object.keys(recipes) as ChannelMethodName[]
).flatMap(gateChecks);
