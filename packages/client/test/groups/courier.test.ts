/** `courier group`, with one folder per account. */
import { expect, test } from 'vitest';
import { Person } from '../support/courier.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { groups: true } });

let people = 0;
async function someone(name: string): Promise<{ person: Person; account: string }> {
  people += 1;
  const person = new Person(world, `${name}${people}`);
  const { account } = await person.json('setup', ...person.network);
  return { person, account };
}

async function lines(person: Person, ...args: string[]): Promise<string[]> {
  const { exit, out, error } = await person.run(args);
  if (exit !== 0) throw new Error(`courier ${args.join(' ')}: exit ${exit}: ${error}`);
  return out.trimEnd().split('\n');
}

test('create, invite, join, approve, send and read', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const group = await ann.person.json('group', 'create', 'Chess', 'club', '--capacity', '9');
  expect(group).toMatchObject({ name: 'Chess club', role: 'owner', members: 1, capacity: 9 });
  const { invite } = await ann.person.json('group', 'invite', 'Chess club', '--uses', '2');
  expect(await lines(bob.person, 'group', 'join', invite)).toEqual([
    expect.stringContaining(`applied to "Chess club" (${group.group})`),
  ]);
  expect(await bob.person.json('group')).toMatchObject({ groups: [{ standing: 'applied' }] });
  expect(await ann.person.json('group', 'applications', 'Chess club')).toMatchObject({
    applications: [{ account: bob.account }],
  });
  await ann.person.json('group', 'approve', 'Chess club', bob.account);
  const { error } = await bob.person.run(['group', 'list']);
  expect(error).toBe(`you are a member of "Chess club" (…${group.group.slice(-6)})\n`);

  await bob.person.json('group', 'nickname', 'Chess club', 'Bobby', 'the', 'Rook');
  const { sequence } = await bob.person.json('group', 'send', group.group, 'e4?');
  await ann.person.run(['group', 'read', 'Chess club']);
  await ann.person.json('group', 'send', 'Chess club', 'e5', '--reply', String(sequence));
  const { entries } = await bob.person.json('group', 'read', 'Chess club', '--after', '1');
  expect(entries).toMatchObject([
    { kind: 'message', type: 'svc.group.member.nickname.update' },
    { kind: 'message', from: bob.account, text: 'e4?', sequence },
    { kind: 'message', from: ann.account, text: 'e5', reply_to: sequence },
  ]);
  expect(await lines(ann.person, 'group', 'read', 'Chess club')).toEqual([
    expect.stringMatching(/^ +0 {2}\* me created the group$/),
    expect.stringMatching(/^ +1 {2}\* me admitted neo:/),
    expect.stringMatching(/^ +2 {2}\* neo:\S+ goes by "Bobby the Rook"$/),
    expect.stringMatching(/^ +3 .*: e4\?$/),
    expect.stringMatching(/^ +4 .*me: \(to 3\) e5$/),
  ]);
  const { members } = await ann.person.json('group', 'members', 'Chess club');
  expect(members).toContainEqual(
    expect.objectContaining({ account: bob.account, role: 'member', nickname: 'Bobby the Rook' }),
  );
});

test('role, ban, rotate, recover, transfer, leave, close', async () => {
  const [ann, bob, carl] = [await someone('ann'), await someone('bob'), await someone('carl')];
  await ann.person.json('group', 'create', 'Club');
  const { invite, invite_id } = await ann.person.json('group', 'invite', 'Club');
  for (const each of [bob, carl]) await each.person.json('group', 'join', invite);
  await ann.person.json('group', 'approve', 'Club', bob.account, carl.account);
  for (const each of [bob, carl]) await each.person.json('group', 'list');
  await ann.person.json('group', 'revoke', 'Club', invite_id);
  expect(await ann.person.json('group', 'invites', 'Club')).toEqual({ invites: [] });
  await ann.person.json('group', 'role', 'Club', bob.account, 'administrator');
  expect(await bob.person.json('group', 'show', 'Club')).toMatchObject({ role: 'administrator' });
  await bob.person.json('group', 'ban', 'Club', carl.account);
  expect(await carl.person.json('group', 'list')).toMatchObject({
    groups: [{ standing: 'ended' }],
  });
  await bob.person.json('group', 'unban', 'Club', carl.account);
  await ann.person.json('group', 'rotate', 'Club', '--new-key');
  expect(await bob.person.json('group', 'recover', 'Club')).toMatchObject({
    expires_at: expect.any(Number),
  });
  expect(
    await ann.person.json('group', 'recoveries', 'Club', '--approve', bob.account),
  ).toMatchObject({ requests: [] });
  await ann.person.json(
    'group',
    'update',
    'Club',
    '--name',
    'Society',
    '--policy',
    'members_shareable',
  );
  await bob.person.json('group', 'list');
  await bob.person.json('group', 'send', 'Society', 'with the new key');
  await ann.person.json('group', 'transfer', 'Society', bob.account);
  await ann.person.json('group', 'leave', 'Society');
  expect(await bob.person.json('group', 'close', 'Society')).toMatchObject({ status: 'closed' });
});

test('read --follow --json prints one JSON object per entry', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  await ann.person.json('group', 'create', 'Club');
  const { invite } = await ann.person.json('group', 'invite', 'Club');
  await bob.person.json('group', 'join', invite);
  await ann.person.json('group', 'approve', 'Club', bob.account);
  await bob.person.json('group', 'list');
  const following = bob.person.start(['group', 'read', 'Club', '--follow', '--json']);
  const shown = () => following.objects().map(({ entry }) => entry?.text ?? entry?.type);
  await expect.poll(shown).toHaveLength(2);
  await ann.person.json('group', 'send', 'Club', 'one');
  await ann.person.json('group', 'update', 'Club', '--description', 'of chess');
  // Another command in the same folder reads it first; it is shown here as well.
  await bob.person.json('group', 'list');
  await ann.person.json('group', 'send', 'Club', 'two');
  await expect.poll(shown).toContain('two');
  following.stop();
  expect(await following.exit).toBe(0);
  expect(shown()).toEqual([
    'group.create',
    'group.application.approval',
    'one',
    'group.update',
    'two',
  ]);
});

test('an undecided application can be forgotten and made again', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const { group } = await ann.person.json('group', 'create', 'Club');
  const { invite } = await ann.person.json('group', 'invite', 'Club');
  await bob.person.json('group', 'join', invite);
  await bob.person.json('group', 'forget', group);
  expect(await bob.person.json('group')).toEqual({ groups: [] });
  await bob.person.json('group', 'join', invite);
  await ann.person.json('group', 'approve', 'Club', bob.account);
  expect(await bob.person.json('group')).toMatchObject({ groups: [{ standing: 'member' }] });
  expect((await bob.person.run(['group', 'forget', group])).exit).toBe(2);
});

test('an ID is never read as a name; a group that ended is found last', async () => {
  const [ann, eve] = [await someone('ann'), await someone('eve')];
  const { group } = await ann.person.json('group', 'create', 'Club');
  const evil = await eve.person.json('group', 'create', group);
  const { invite } = await eve.person.json('group', 'invite', evil.group);
  await ann.person.json('group', 'join', invite);
  await eve.person.json('group', 'approve', evil.group, ann.account);
  await ann.person.json('group');
  expect(await ann.person.json('group', 'show', group)).toMatchObject({ group, name: 'Club' });
  await ann.person.json('group', 'close', 'Club');
  expect(await lines(ann.person, 'group')).toContainEqual(
    expect.stringMatching(new RegExp(`^${group} +closed +owner +Club$`)),
  );
  const other = await ann.person.json('group', 'create', 'Club');
  await ann.person.json('group', 'forget', group);
  expect(await ann.person.json('group', 'show', 'Club')).toMatchObject({ group: other.group });
});

test('each failure has its exit status', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  await ann.person.json('group', 'create', 'Club');
  await ann.person.json('group', 'create', 'Club');
  const exitOf = async (person: Person, ...args: string[]) => (await person.run(args)).exit;
  expect(await exitOf(ann.person, 'group', 'show', 'Club')).toBe(2);
  expect(await exitOf(ann.person, 'group', 'show', 'Nothing')).toBe(2);
  const [group] = (await ann.person.json('group')).groups;
  const { invite } = await ann.person.json('group', 'invite', group.group);
  await bob.person.json('group', 'join', invite);
  expect(await exitOf(bob.person, 'group', 'send', group.group, 'hello')).toBe(7);
  expect(await exitOf(bob.person, 'group', 'join', 'svc-group:AAAA')).toBe(6);
  expect(await exitOf(ann.person, 'group', 'approve', group.group, ann.account)).toBe(2);
  expect(await exitOf(ann.person, 'group', 'role', group.group, bob.account, 'king')).toBe(2);
  expect((await ann.person.run(['group', 'leave', group.group])).error).toContain('before leaving');
  expect((await ann.person.run(['group', 'ban', group.group, 'neo:0:x'])).error).toBe(
    'courier: neo:0:x is not an account ID: courier contacts lists them\n',
  );
  expect(await exitOf(ann.person, 'group', 'leave', group.group)).toBe(7);
  expect(await exitOf(bob.person, 'group', 'rotate', group.group)).toBe(7);
  await world.stopRelay();
  expect(await exitOf(ann.person, 'group', 'send', group.group, 'hello')).toBe(4);
  expect(await exitOf(ann.person, 'group', 'read', group.group)).toBe(0);
  expect(await exitOf(ann.person, 'group', 'help')).toBe(0);
});
