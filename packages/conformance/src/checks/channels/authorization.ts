/** Rules of all channel methods: roles, unknown and closed channels (06 §1, §7.4, §8). */

import {
  type ChannelMethodName,
  callTemplates,
  prepareCall,
} from '../../channels/channel-calls.ts';
import { assertUnchanged } from '../../channels/channel-reader.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { type Check, checksOf } from '../../check.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

/** Checks which callers a method accepts, and in which state of the channel. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a list of independent checks
function authorizationChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { allowed, writes } = callTemplates[method];

  if (method !== 'channel.create') {
    check(
      'unknown-channel',
      {
        source: '06 §8',
        title: 'answers not_found for an unknown channel, to every caller',
      },
      async (context) => {
        const { by, params, again, fixture } = await prepareCall(context, method, { readers: 1 });
        const [rea] = fixture.readers as [TestAccount];
        for (const person of [by, rea]) {
          const channel = TestChannel.draft(context, by);
          const call = { method, params: again({ by: person, channel }) };
          await context.expectError(person.caller, call, 'not_found');
        }
        await context.expectOk(by.caller, method, params);
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
          : `serves ${allowed === 'owner' ? 'the owner' : 'owner and moderators'}, and answers others with forbidden`,
    },
    async (context) => {
      const ready = await prepareCall(context, method, { moderators: 1, readers: 1, devices: 2 });
      const { again, by, fixture } = ready;
      const [mia, rea] = [...fixture.moderators, ...fixture.readers] as [TestAccount, TestAccount];
      const others = allowed === 'readers' ? [] : [rea, withDevice(rea, 1)];
      if (allowed === 'owner') others.push(mia, withDevice(mia, 1));
      for (const person of others) {
        const call = { method, params: again({ by: person }) };
        await assertUnchanged(fixture.channel, () =>
          context.expectError(person.caller, call, 'forbidden'),
        );
      }
      if (allowed !== 'owner') {
        const person = allowed === 'readers' ? rea : mia;
        const { channel } = fixture;
        const target = callTemplates[method].targets ? await channel.post() : 1;
        const params = callTemplates[method].build({ channel, by: person, target });
        await context.expectOk(person.caller, method, params);
      }
      // Any device of the account may call (06 §4).
      const laptop = withDevice(by, 1);
      await context.expectOk(laptop.caller, method, again({ by: laptop }));
    },
  );

  check(
    'closed',
    {
      source: '06 §7.4, §9.1',
      title: writes
        ? 'answers state_conflict after the channel is closed, or bad_request if malformed'
        : 'works as before after the channel is closed',
    },
    async (context) => {
      const { again, by, fixture } = await prepareCall(context, method);
      await fixture.channel.close();
      const params = again();
      if (!writes) {
        await context.expectOk(by.caller, method, params);
        return;
      }
      const malformed = { ...params, device_signature: 'short' };
      await assertUnchanged(fixture.channel, async () => {
        await context.expectError(by.caller, { method, params }, 'state_conflict');
        await context.expectError(by.caller, { method, params: malformed }, 'bad_request');
      });
    },
  );

  if (callTemplates[method].signed) {
    check(
      'removed-device',
      { source: '06 §8.1, §8.6', title: 'refuses a device that the account has removed' },
      async (context) => {
        const { again, by, fixture } = await prepareCall(context, method, { devices: 2 });
        const laptop = withDevice(by, 1);
        await publishDevices(context, by, [by.device]);
        const call = { method, params: again({ by: laptop }) };
        await assertUnchanged(fixture.channel, () =>
          context.expectError(laptop.caller, call, 'unauthorized'),
        );
        await context.expectOk(by.caller, method, again());
      },
    );
  }
  return list;
}

export const channelAuthorizationChecks: readonly Check[] = (
  Object.keys(callTemplates) as ChannelMethodName[]
).flatMap(authorizationChecks);
