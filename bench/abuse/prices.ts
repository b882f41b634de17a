/** Attacks with calls that cost more than others, and with calls that are refused. */
import type { TestAccount } from '@posthouse/conformance';
import { deriveAccountId, encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { groupFixture } from '../../packages/conformance/src/groups/group-fixture.ts';
import { type Attack, hammer, hold, openKit, openRaw, openSession, repeat } from './attack.ts';

/** Epochs of the group whose keys are read: one page. */
const epochs = 50;

export const keySync: Attack = {
  title: '1 account reads a page of 50 group keys as fast as it can',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { group, owner } = await groupFixture(context);
    for (let epoch = 1; epoch < epochs && !signal.aborted; epoch += 1) await group.rotate([owner]);
    const params = { group_id: group.groupId, limit: epochs };
    const caller = await context.wss();
    await context.authenticateDevice(caller, owner.device);
    const call = () => ({ method: 'group.key.sync', params });
    await hammer(target, caller.socket, { signal, call });
    begun();
    await hold(signal);
  },
};

export const outsiderBan: Attack = {
  title: '1 account bans 21,000 accounts in a group that it is not a member of',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { group, strangers } = await groupFixture(context, { strangers: 1 });
    const [outsider] = strangers as [TestAccount];
    const caller = await context.wss();
    await context.authenticateDevice(caller, outsider.device);
    const { network } = context;
    const accounts = Array.from({ length: 21_000 }, () =>
      deriveAccountId(network, encodeBase64url(nodeRandom(33))),
    );
    const params = group.chainBody('group.member.ban', { accounts }, outsider);
    const call = () => ({ method: 'group.member.ban', params });
    await hammer(target, caller.socket, { signal, call, inFlight: 2 });
    begun();
    await hold(signal);
  },
};

export const unknownMembers: Attack = {
  title: '4 connections of a stranger send 1.8 MB of unknown members, one body after another',
  async run(target, signal) {
    const { host, pathname } = new URL(target.https);
    const members = Array.from({ length: 170_000 }, (_, index) => `"${index.toString(36)}x":0`);
    const body = `{${members.join(',')}}`;
    const request =
      `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    await repeat(
      4,
      async () => {
        const socket = await openRaw(target);
        const end = () => socket.destroy();
        signal.addEventListener('abort', end, { once: true });
        const closed = new Promise((resolve) => socket.once('close', resolve));
        if (!socket.destroyed && !signal.aborted) {
          socket.resume().write(request);
          await closed;
        }
        signal.removeEventListener('abort', end);
      },
      signal,
    );
  },
};

export const refusedForRate: Attack = {
  title: '1 account makes cheap calls as fast as it can, most of them refused for rate',
  hasPreparation: true,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const { caller } = await openSession(context);
    const call = () => ({ method: 'relay.info', params: {} });
    await hammer(target, caller.socket, { signal, call, inFlight: 64 });
    begun();
    await hold(signal);
  },
};
