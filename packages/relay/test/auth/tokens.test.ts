import { describe, expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({
  public: { https: ['https://127.0.0.1:0/svc/v1', 'https://localhost:0/other/svc/v1'], wss: [] },
});
const ann = relay.person('ann');

const sync = async (token: string, index = 0) =>
  codeOf(await relay.http(index).call('message.timeline.sync', {}, { token }));

describe('02 §2.6, §10: tokens over HTTP', () => {
  test('a token is valid on any connection of its origin until it expires', async () => {
    const { token } = await relay.logInDevice(ann);
    expect(await sync(token)).toBe('ok');
    relay.clock.advance(86_399);
    expect(await sync(token)).toBe('ok');
    relay.clock.advance(1);
    expect(await sync(token)).toBe('unauthorized');
  });

  test('a token stays valid after a restart of the relay', async () => {
    const { token } = await relay.logInDevice(ann);
    await relay.restart();
    expect(await sync(token)).toBe('ok');
  });

  test('at another origin of the same relay it is unauthorized', async () => {
    const { token } = await relay.logInDevice(ann);
    expect(await sync(token, 1)).toBe('unauthorized');
    expect(await sync(token, 0)).toBe('ok');
  });

  test('an account token for a device method is forbidden', async () => {
    const { token } = await relay.logInAccount(ann);
    expect(await sync(token)).toBe('forbidden');
  });

  test('a device token for an account method is forbidden', async () => {
    const { token } = await relay.logInDevice(ann);
    const route = await ann.route();
    const answer = await relay.http().call('account.route.publish', route, { token });
    expect(codeOf(answer)).toBe('forbidden');
  });

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['unknown', 'A'.repeat(43)],
    ['long', 'A'.repeat(257)],
  ])('a token that is %s is unauthorized', async (_, token) => {
    const headers = token === undefined ? {} : { 'x-svc-session': token };
    const answer = await relay
      .http()
      .send({ verb: 'GET', path: '/message/timeline/sync', headers });
    expect(answer.status).toBe(401);
    expect(codeOf(answer)).toBe('unauthorized');
  });

  test('a token twice is unauthorized', async () => {
    const { token } = await relay.logInDevice(ann);
    const answer = await relay.http().send({
      verb: 'GET',
      path: '/message/timeline/sync',
      headers: { 'x-svc-session': [token, token] },
    });
    expect(codeOf(answer)).toBe('unauthorized');
  });

  test('a wrong token has no effect on a method that needs none', async () => {
    const headers = { 'x-svc-session': 'nonsense' };
    const answer = await relay.http().send({ verb: 'GET', path: '/relay/info', headers });
    expect(answer.status).toBe(200);
  });

  test('expired challenges and sessions leave the database', async () => {
    await relay.challenge(ann.account);
    await relay.logInDevice(ann);
    const count = () =>
      relay.server.context.storage.read((tx) =>
        tx.get<{ n: number }>(
          `SELECT (SELECT count(*) FROM auth_challenges) + (SELECT count(*) FROM auth_sessions)
            AS n`,
        ),
      );
    expect((await count())?.n).toBeGreaterThan(0);
    relay.clock.advance(86_400);
    // The job runs on its own; it may have finished after each of these transactions.
    while (((await count())?.n ?? 0) > 0)
      await relay.server.context.storage.write('x', async () => {});
    expect((await count())?.n).toBe(0);
  });
});
