/** 0025: nothing that depends on a commit leaves a relay before the flush of it. */
import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/folder.ts';
import { ServedRelay, sqliteIn } from '../support/served-relay.ts';

const turn = () => new Promise<void>((go) => setImmediate(go));

test('0025: answer, hint, answer to a repeat, and login wait for the flush', async () => {
  using folder = temporaryFolder();
  await using relay = await ServedRelay.start({}, sqliteIn(folder.path));
  const ann = await relay.register('ann');
  const ben = await relay.register('ben');
  using sender = await relay.socket();
  using receiver = await relay.socket();
  await relay.bindDevice(sender, ann.device());
  await relay.bindDevice(receiver, ben.device());

  const flushed = Promise.withResolvers<void>();
  let commits = 0;
  relay.faults.reach = (point) => {
    if (point === 'committed') commits += 1;
  };
  relay.faults.flush = async (flush) => {
    await flushed.promise;
    await flush();
  };
  const done: string[] = [];
  const note = async (name: string, work: Promise<unknown>) => {
    const answer = await work;
    done.push(name);
    return answer;
  };
  const message = ann.message(ben, { authorization: ben.grant(ann) });
  const send = () => sender.call('message.send', message);
  const first = note('answer', send());
  while (commits === 0) await turn();
  const later = [note('repeat', send()), note('login', relay.logInDevice(ben))];
  // A round trip to each, and more turns than any of them would take.
  expect(await receiver.notificationsSoFar()).toEqual([]);
  await sender.call('relay.info');
  for (let turns = 0; turns < 50; turns += 1) await turn();
  expect(done).toEqual([]);
  flushed.resolve();
  const answered = await first;
  expect(answered).toHaveProperty('result.status', 'target_accepted');
  expect(await later[0]).toHaveProperty('result', (answered as { result: unknown }).result);
  await later[1];
  expect(await receiver.notification()).toMatchObject({ params: { head: 0 } });
});
