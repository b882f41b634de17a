import { beforeEach, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
});

/** Statements that a read takes. */
async function statementsOf(method: string, params: object = {}): Promise<number> {
  let count = 0;
  relay.faults.beforeStatement = () => {
    count += 1;
  };
  const { groupId: group_id } = group;
  await relay.call(method, { group_id, ...params }, { session: ann.session() });
  delete relay.faults.beforeStatement;
  return count;
}

test('05 §13.4: a page of many events of many devices runs as many statements as one of two events', async () => {
  const people: Person[] = [];
  for (let count = 0; count < 8; count += 1) {
    people.push(await Person.register(relay, `member ${count}`));
  }
  await group.admit(...people);
  await group.send(ann, 1);
  await group.update({ name: 'team' });
  const few = await statementsOf('group.sync', { after: 1 });
  for (const person of people) {
    await group.send(person, 1);
    await group.update({ name: `team of ${person.account.slice(0, 8)}` });
  }
  expect(await statementsOf('group.sync', { after: 1 })).toBe(few);
});

test('05: a call runs as many statements in a large group as in a small one', async () => {
  const ben = await Person.register(relay, 'ben');
  await group.admit(ben);
  const methods = [
    ['group.resolve', {}],
    ['group.sync', { limit: 2 }],
    ['group.key.sync', { after: 0, limit: 1 }],
    ['group.invite.list', { limit: 1 }],
    ['group.application.list', { limit: 1 }],
    ['group.member.recovery.list', { limit: 1 }],
  ] as const;
  const counts = async () => {
    const found = [];
    for (const [method, params] of methods) {
      await statementsOf(method, params);
      found.push([method, await statementsOf(method, params)]);
    }
    return found;
  };
  // A page of one looks at two: whether there is more.
  for (const name of ['guest', 'other guest']) {
    await group.apply(await Person.register(relay, name), await group.invite());
  }
  await group.requestRecovery(ben);
  const before = await counts();
  for (let index = 0; index < 12; index += 1) {
    const person = await Person.register(relay, `member ${index}`);
    await group.admit(person);
    await group.requestRecovery(person);
    const applicant = await Person.register(relay, `applicant ${index}`);
    await group.apply(applicant, await group.invite());
    await group.send(person, index + 2);
  }
  expect(await counts()).toEqual(before);
});

test('05 §12.4: a signed write loads the group twice: to admit the caller and to decide', async () => {
  const ben = await Person.register(relay, 'ben');
  const loadsOf = async (write: () => Promise<unknown>): Promise<number> => {
    let count = 0;
    relay.faults.beforeStatement = (sql) => {
      if (/FROM groups WHERE group_id = \?/.test(sql)) count += 1;
    };
    await write();
    delete relay.faults.beforeStatement;
    return count;
  };
  await group.apply(ben, await group.invite());
  expect(await loadsOf(() => group.approve([ben]))).toBe(2);
  await group.requestRecovery(ben);
  expect(await loadsOf(() => group.recover([ben]))).toBe(2);
  expect(await loadsOf(() => group.update({ name: 'team' }))).toBe(2);
  // An append decides by what it reads of the group in one statement of its own.
  expect(await loadsOf(() => group.send(ann, 2))).toBe(1);
  expect(await loadsOf(() => group.rotate())).toBe(4);
});
