/** What the operator changes at one of three processes of a relay, at the others. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { runVerb, type Verb } from '../../src/admin/verb.ts';
import { findVerb } from '../../src/admin/verbs/index.ts';
import type { RelayConfig } from '../../src/config/index.ts';
import { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';

const patience = { timeout: 20_000, interval: 20 };

/** Seconds of the relay's clock after which a change is in force everywhere. */
const inForceAfter = { there: 2, away: 10 } as const;

describe.skipIf(withoutNats !== undefined)(
  `the operator of several processes (${withoutNats ?? 'real'})`,
  () => {
    let a: ServedRelay;
    let all: ServedRelay[];
    let nats: TestNats;
    const parts = new AsyncDisposableStack();

    beforeAll(async () => {
      nats = parts.use(await TestNats.start());
      const https = ['https://127.0.0.1:8443/svc/v1'];
      const bus = { nats: nats.url };
      a = parts.use(await ServedRelay.start({ public: { https }, bus, registration: 'invite' }));
      const [b, c] = [parts.use(await a.startProcess()), parts.use(await a.startProcess())];
      all = [a, b, c];
    });
    afterAll(() => parts.disposeAsync());

    /** Runs a verb as the admin interface of the first process does. */
    const operate = (noun: string, name: string, params: Record<string, string | number>) => {
      const { storage, clock, random, limits, log } = a.server.context;
      const config = {
        limits,
        trustedProxies: [],
        registration: 'invite',
      } as unknown as RelayConfig;
      const tools = { storage, clock, random, config };
      return runVerb(findVerb(noun, name) as Verb, params, { tools, log, by: 'http' });
    };

    const eachConnected = async (is: boolean) => {
      for (const { server } of all) {
        await vi.waitFor(() => expect(server.context.bus.isConnected).toBe(is), patience);
      }
    };

    let people = 0;

    /** A person whom the operator let in at the first process, and who came by another one. */
    const arrived = async (by: ServedRelay): Promise<Person> => {
      people += 1;
      const person = new Person(by, `person ${people}`);
      await operate('account', 'allow', { account: person.account });
      await person.register(['phone']);
      return person;
    };

    /** A connection and a token of the person at each process. */
    const sessionsOf = (person: Person) =>
      Promise.all(
        all.map(async (process) => {
          const socket = await process.socket();
          const bound = await process.bindDevice(socket, person.device());
          expect(bound).toHaveProperty('result');
          const { token } = await process.logInDevice(person);
          const callCode = async () =>
            codeOf(await process.http().call('message.timeline.sync', {}, { token }));
          expect(await callCode()).toBe('ok');
          return { process, callCode, socket };
        }),
      );

    /** Requires that all sessions have ended, and that the person is refused at each process. */
    const allEnded = async (person: Person, sessions: Awaited<ReturnType<typeof sessionsOf>>) => {
      for (const { process, callCode, socket } of sessions) {
        await vi.waitFor(async () => {
          expect(await callCode()).not.toBe('ok');
          const { readyState } = socket.socket;
          const isOpen = readyState === socket.socket.OPEN;
          if (isOpen)
            expect(await socket.call('message.timeline.sync', {})).toHaveProperty('error');
          await expect(process.logInDevice(person)).rejects.toThrow();
        }, patience);
      }
    };

    describe.each(['there', 'away'] as const)('NATS %s', (where) => {
      beforeAll(async () => {
        if (where === 'away') {
          await nats.stop();
          await eachConnected(false);
        }
      });
      afterAll(async () => {
        if (where === 'away') {
          await nats.start();
          await eachConnected(true);
        }
      });
      const pass = () => a.clock.advance(inForceAfter[where]);

      test('a block ends the sessions at each process, and its end lets the account in again', async () => {
        const person = await arrived(all[1] as ServedRelay);
        const other = await arrived(all[2] as ServedRelay);
        const sessions = await sessionsOf(person);
        const others = await sessionsOf(other);
        await operate('block', 'add', { account: person.account, reason: 'spam' });
        pass();
        await allEnded(person, sessions);
        for (const { callCode } of others) expect(await callCode()).toBe('ok');
        await operate('block', 'remove', { account: person.account });
        pass();
        for (const { process } of sessions) {
          await vi.waitFor(async () => {
            expect(await process.logInDevice(person)).toHaveProperty('token');
          }, patience);
        }
      });

      test('an invite that was made at one counts at another, and one that was revoked at none', async () => {
        const [b, c] = all as [ServedRelay, ServedRelay, ServedRelay];
        const { code, id } = await operate('invite', 'create', { uses: 2, days: 1, note: '' });
        const showing = async (process: ServedRelay, person: Person) => {
          const { nonce } = await process.challenge(person.account);
          const proof = { ...(await process.accountProof(person, nonce)), invite_code: code };
          return codeOf(await process.http().call('auth.account.verify', proof));
        };
        people += 1;
        const guest = new Person(b, `guest ${people}`);
        expect(await showing(c, guest)).toBe('ok');
        await guest.register(['phone']);
        await operate('invite', 'revoke', { id: String(id) });
        people += 1;
        const late = new Person(c, `late ${people}`);
        // A guest of groups and channels may sign in without a right.
        expect(await showing(b, late)).toBe('ok');
        await expect(late.register(['phone'])).rejects.toMatchObject({ code: 'target_not_local' });
      });

      test('a deleted account has no session at any process, and comes again by a right only', async () => {
        const person = await arrived(all[1] as ServedRelay);
        const sessions = await sessionsOf(person);
        await operate('account', 'delete', { account: person.account });
        pass();
        await allEnded(person, sessions);
        a.clock.advance(60);
        pass();
        const refused = { code: 'target_not_local' };
        await vi.waitFor(() => expect(person.moveIn()).rejects.toMatchObject(refused), patience);
        await operate('account', 'allow', { account: person.account });
        await person.moveIn();
        for (const process of all) {
          expect(await process.logInDevice(person)).toHaveProperty('token');
        }
      });
    });
  },
);
