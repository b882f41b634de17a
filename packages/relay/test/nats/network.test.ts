/** Two processes of relay A with one peer key in a network with relay B (07 §B5, §C). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defaultPeerLimits, ed25519Identity, PeerHost } from '@posthouse/peer';
import { decodeBase64url, utf8 } from '@posthouse/protocol';
import {
  deriveRouteKey,
  encodeRelayNotification,
  encodeRelayRequest,
  kadTypes,
  parsePeerId,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RelayAnswer } from '../../src/context.ts';
import { blockRelay, unblockRelay } from '../../src/federation/index.ts';
import { ForeignRelay } from '../federation/foreign-relay.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readPage } from '../fixtures/group-reader.ts';
import { Person } from '../fixtures/person.ts';
import { rowsOf } from '../support/engine.ts';
import { codeOf } from '../support/http.ts';
import { network as protocolNetwork } from '../support/modules.ts';
import { withoutNats } from '../support/nats.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { isConnected, ProcessNetwork, patience } from './process-network.ts';

describe.skipIf(withoutNats !== undefined)(
  `processes of a relay in a network (${withoutNats ?? 'real'})`,
  () => {
    const parts = new AsyncDisposableStack();
    let network: ProcessNetwork;
    let first: ServedRelay;
    let second: ServedRelay;
    let b: ServedRelay;
    let idOfA: string;
    beforeAll(async () => {
      // Relays that tests make up store no routes.
      const limits = { dhtReplicas: 1 };
      network = parts.use(await ProcessNetwork.start({ host: { groups: true }, limits }));
      [first, second] = network.processes;
      ({ b } = network);
      idOfA = first.relayId;
    });
    afterAll(() => parts.disposeAsync());

    let people = 0;
    /** At home at A. */
    let ann: Person;
    /** At home at B. */
    let bob: Person;
    beforeEach(async () => {
      people += 1;
      ann = await first.register(`ann ${people}`);
      bob = await b.register(`bob ${people}`, ['phone', 'laptop']);
      await ann.publishProfile();
      await bob.publishProfile();
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      network.proxy.restore();
      await network.nats.start();
      await network.bus(true);
      await network.connected();
    });

    /** IDs of the messages in a person's timeline, in order. */
    async function received(relay: ServedRelay, person: Person): Promise<string[]> {
      const { token } = await relay.logInDevice(person);
      const page = await relay.http().call('message.timeline.sync', { limit: 100 }, { token });
      const { items } = JSON.parse(page.text) as { items: { envelope: JsonObject }[] };
      return items.map(({ envelope }) => String(envelope.message_id));
    }

    /** Sends messages of a person at a process; returns their IDs. */
    async function send(
      at: ServedRelay,
      from: Person,
      to: Person,
      count: number,
    ): Promise<string[]> {
      const { token } = await at.logInDevice(from);
      const sent: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const message = from.message(to);
        const answer = await at.http().call('message.send', message, { token });
        expect(codeOf(answer)).toBe('ok');
        sent.push(message.envelope.message_id);
      }
      return sent;
    }

    const arrive = (relay: ServedRelay, person: Person, ids: readonly string[]) =>
      vi.waitFor(async () => {
        expect((await received(relay, person)).sort()).toEqual([...ids].sort());
      }, patience);

    /** Asks A for Ann's device, as B. */
    const askForAnn = () =>
      b.server.context.relayClient.call(idOfA, 'device.status', {
        account: ann.account,
        device_id: ann.device().deviceId,
      });
    const active = { kind: 'result', value: expect.objectContaining({ status: 'active' }) };

    const metric = (at: ServedRelay, name: string, labels: Record<string, string> = {}) =>
      at.server.context.metrics.value(name as never, labels as never);

    test('07 §B5: B has a connection with each process, all with one Peer ID', async () => {
      const { peerId } = first.server.context.identity;
      expect(second.server.context.identity.peerId).toBe(peerId);
      expect([isConnected(first), isConnected(second)]).toEqual([true, true]);
      expect(metric(b, 'peers', { state: 'eligible' })).toBe(1);
      expect(await askForAnn()).toEqual(active);
    });

    test('07 §B4: a dial that ends at a process of the same relay is closed', async () => {
      const key = readFileSync(join(first.data, 'keys', 'peer.key'), 'utf8');
      const seed = decodeBase64url(key.trim());
      await using host = new PeerHost({
        identity: ed25519Identity(seed as Uint8Array),
        descriptor: () => '{}',
        admit: async () => 'the relay itself',
        protocols: new Map(),
        limits: defaultPeerLimits,
        agent: 'the same relay',
      });
      const { context, peerPort: port = 0 } = second.server;
      const address = { host: '127.0.0.1', port, peerId: parsePeerId(context.identity.peerId) };
      const dial = host.dial({ ...address, signal: AbortSignal.timeout(20_000) } as never);
      await expect(dial).rejects.toMatchObject({ code: 'own_peer' });
      expect(metric(second, 'peers', { state: 'failing' })).toBe(0);
    });

    test('07 §C8: messages of both processes arrive once, in both directions', async () => {
      const [one, two, back] = await Promise.all([
        send(first, ann, bob, 10),
        send(second, ann, bob, 10),
        send(b, bob, ann, 20),
      ]);
      await arrive(b, bob, [...one, ...two]);
      await arrive(second, ann, back);
    });

    test('a process stops: B asks the other one at once', async () => {
      for (const stopped of network.processes) {
        const failed = metric(b, 'relays_failed');
        await stopped.stop();
        expect(await askForAnn()).toEqual(active);
        expect(metric(b, 'relays_failed')).toBe(failed);
        await stopped.resume();
        network.balance();
        await network.connected();
        expect(await askForAnn()).toEqual(active);
      }
    });

    test('07 §C4: a connection that ends during a call: the other process answers it', async () => {
      network.proxy.cut();
      await vi.waitFor(() => expect(first.server.context.bus.isConnected).toBe(false), patience);
      const dropAt = ({ server }: ServedRelay) =>
        server.context.bus.publish([{ kind: 'relay-dropped', relay: b.relayId }]);
      // The connection of the second process is the newest, so it is used.
      dropAt(second);
      await vi.waitFor(() => expect(isConnected(second)).toBe(false), patience);
      await network.connected();
      const { storage } = second.server.context;
      const write = storage.write.bind(storage);
      const reached = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<void>();
      vi.spyOn(storage, 'write').mockImplementation(async (aggregate, work) => {
        if (aggregate === `account:${ann.account}`) {
          reached.resolve();
          await gate.promise;
        }
        return await write(aggregate, work);
      });
      const failed = metric(b, 'relays_failed');
      const answer = askForAnn();
      await reached.promise;
      dropAt(second);
      expect(await answer).toEqual(active);
      expect(metric(b, 'relays_failed')).toBe(failed);
      gate.resolve();
    });

    test('07 §C8: what waited for B is delivered once by both processes', async () => {
      await arrive(b, bob, await send(first, ann, bob, 1));
      const [known] = await received(b, bob);
      await b.stop();
      const before = delivered();
      const sent = (
        await Promise.all([send(first, ann, bob, 12), send(second, ann, bob, 12)])
      ).flat();
      await b.resume();
      await network.connected();
      await arrive(b, bob, [...sent, String(known)]);
      await vi.waitFor(async () => {
        expect(await rowsOf(first.server.context.storage, 'deliveries')).toEqual([]);
      }, patience);
      expect(delivered() - before).toBe(sent.length);
    });

    const delivered = () =>
      network.processes
        .map((process) => metric(process, 'relay_calls', { method: 'message.deliver', code: 'ok' }))
        .reduce((one, other) => one + other);

    test('07 §B5: a relay that is blocked is dropped by all processes, and comes back', async () => {
      const { storage, clock } = first.server.context;
      await blockRelay(
        storage,
        { id: b.relayId, reason: '', endsAt: undefined },
        { now: clock.now(), limits: first.server.context.limits },
      );
      network.advance(60);
      await vi.waitFor(() => {
        expect([isConnected(first), isConnected(second)]).toEqual([false, false]);
      }, patience);
      expect(await askForAnn()).not.toEqual(active);
      await unblockRelay(storage, b.relayId, clock.now());
      await network.connected();
      network.advance(900);
      await vi.waitFor(async () => expect(await askForAnn()).toEqual(active), patience);
    });

    describe('with a relay that can say anything', () => {
      let foreign: ForeignRelay;
      let toFirst: ForeignRelay['connection'];
      let toSecond: ForeignRelay['connection'];
      /** At home at the foreign relay. */
      let cat: Person;
      /** Devices that their home answers as active. */
      let current: Set<string>;
      let bytes = 0x90;
      beforeEach(async () => {
        bytes += 1;
        foreign = await ForeignRelay.start(first, { byte: bytes, registry: network.registryFile });
        await foreign.dial(second);
        toSecond = foreign.connection;
        await foreign.dial(first);
        toFirst = foreign.connection;
        cat = new Person(first, `cat ${people}`);
        await cat.addDevice('phone');
        await cat.addDevice('laptop');
        current = new Set(cat.deviceIds());
        foreign.serveRpc = async (stream) => {
          const frame = await stream.readFrame();
          if (frame === undefined) return;
          const { id, params } = JSON.parse(Buffer.from(frame).toString());
          const status = current.has(params.device_id)
            ? { status: 'active', expires_at: first.clock.now() + 10_000 }
            : { status: 'inactive' };
          await stream.writeFrame(utf8(JSON.stringify({ jsonrpc: '2.0', id, result: status })));
        };
        await putRoute(await foreign.route(cat, 2_000));
      });
      afterEach(async () => {
        await foreign.list('disabled');
        await foreign[Symbol.asyncDispose]();
      });

      async function putRoute(route: JsonObject): Promise<void> {
        const key = deriveRouteKey(protocolNetwork, String(route.account));
        const value = utf8(canonicalJson(route));
        await foreign.askDht({ type: kadTypes.putValue, key, record: { key, value } });
      }

      /** Delivers to one process. */
      async function deliverTo(process: ServedRelay, params: object): Promise<RelayAnswer> {
        const stream = await open(process);
        const request = { id: 1, method: 'message.deliver', params: params as JsonObject } as const;
        await stream.writeFrame(utf8(encodeRelayRequest(request)));
        stream.end();
        const frame = await stream.readFrame();
        return readRelayResponse(Buffer.from(frame as Uint8Array).toString(), 1) as RelayAnswer;
      }

      /** Opens a stream of relay RPC at one process. */
      async function open(process: ServedRelay) {
        const connection = process === first ? toFirst : toSecond;
        const { word } = protocolNetwork;
        return await connection.openStream(`/${word}/relay/1.0.0`, {
          signal: AbortSignal.timeout(20_000),
        });
      }

      function deliverable() {
        const { envelope, recipient_boxes } = cat.message(ann);
        return { envelope, recipient_boxes, signer_certificate: cat.device().certificate };
      }

      test('07 §C8: a message at both processes at once is one record, with one answer', async () => {
        const messages = Array.from({ length: 10 }, deliverable);
        for (const message of messages) {
          const [one, other] = await Promise.all([
            deliverTo(first, message),
            deliverTo(second, message),
          ]);
          expect(one).toMatchObject({ kind: 'result', value: { status: 'target_accepted' } });
          expect(other).toEqual(one);
        }
        const ids = messages.map(({ envelope }) => envelope.message_id);
        expect(await received(first, ann)).toEqual(ids);
      });

      test('07 §C8: of different content under one ID one is accepted', async () => {
        for (let round = 1; round <= 10; round += 1) {
          const message = deliverable();
          const changed = { ...message, extra: 'another' };
          const answers = await Promise.all([
            deliverTo(first, message),
            deliverTo(second, changed),
          ]);
          const kinds = answers.map((one) => (one.kind === 'refused' ? one.code : one.kind));
          expect(kinds.sort()).toEqual(['result', 'state_conflict']);
          expect(await received(second, ann)).toHaveLength(round);
        }
      });

      async function openGroup(): Promise<TestGroup> {
        const group = await TestGroup.create(first, ann);
        await group.admit(cat);
        return group;
      }

      const hint = async (device: string) => {
        const params = { account: cat.account, device_id: cat.device(device).deviceId };
        const stream = await open(first);
        await stream.writeFrame(utf8(encodeRelayNotification('device.status.changed', params)));
        stream.end();
        await stream.readFrame();
      };
      const epochOf = async ({ groupId }: TestGroup) => {
        const rows = await rowsOf(first.server.context.storage, 'groups');
        return Number(rows.find((row) => row.group_id === groupId)?.epoch);
      };
      const intervalsOf = async (device: string) => {
        const { deviceId } = cat.device(device);
        const rows = await rowsOf(first.server.context.storage, 'group_intervals');
        return rows
          .filter((row) => row.device_id === deviceId)
          .map(({ message_to }) => (message_to === null ? 'open' : 'closed'));
      };

      test.each(['there', 'away'])(
        '07 §C9, 05 §7.3: a hint at one process ends a device at the other, NATS %s',
        async (bus) => {
          const group = await openGroup();
          const laptop = await second.withGroups(cat, [group], { device: 'laptop' });
          const { token } = await second.logInDevice(cat, 'laptop');
          const phone = await second.withGroups(cat, [group]);
          const read = { group_id: group.groupId };
          for (const device of ['phone', 'laptop']) {
            await readPage(first, group, cat, { device });
          }
          const codeAt = async () =>
            codeOf(await second.http().call('group.sync', { ...read, after: -1 }, { token }));
          expect(await codeAt()).toBe('ok');
          expect(await intervalsOf('laptop')).toEqual(['open']);
          const before = await epochOf(group);
          if (bus === 'away') {
            await network.nats.stop();
            await network.bus(false);
          }
          current.delete(cat.device('laptop').deviceId);
          await hint('laptop');
          expect(await codeAt()).not.toBe('ok');
          await vi.waitFor(async () => expect(await codeAt()).toBe('unauthorized'), patience);
          await vi.waitFor(async () => {
            expect(await intervalsOf('laptop')).toEqual(['closed']);
          }, patience);
          expect(await laptop.call('group.sync', read)).toHaveProperty('error.code', -32001);
          expect(await phone.call('group.sync', read)).toHaveProperty('result');
          expect(await intervalsOf('phone')).toEqual(['open']);
          await vi.waitFor(async () => expect(await epochOf(group)).toBe(before + 1), patience);
          for (const process of network.processes) {
            await expect(process.logInDevice(cat, 'laptop')).rejects.toThrow(/device_unknown/);
          }
          network.advance(31);
          await first.logInDevice(cat);
          expect(await epochOf(group)).toBe(before + 1);
        },
      );

      test('07 §B11: routes at both processes at once: both follow the highest', async () => {
        for (let round = 0; round < 6; round += 1) {
          const eve = await first.register(`eve ${people} ${round}`);
          const [here, there] = [10_000, 9_000 + 2_000 * (round % 2)];
          const { token } = await second.logInAccount(eve);
          const draft = await eve.route({ revision: here });
          const [published] = await Promise.all([
            second.http().call('account.route.publish', draft, { token }),
            putRoute(await foreign.route(eve, there)),
          ]);
          // An account that has left has no device state here any more.
          const isPublished = codeOf(published) === 'ok';
          if (!isPublished) expect(codeOf(published)).toMatch(/^(state_conflict|stale_state)$/);
          const highest = isPublished ? Math.max(here, there) : there;
          for (const process of network.processes) {
            const answer = await process
              .http()
              .call('account.route.resolve', { account: eve.account });
            expect(JSON.parse(answer.text)).toMatchObject({
              revision: highest,
              relay_id: highest === here ? first.relayId : foreign.relayId,
            });
          }
        }
      });

      test('07 §B5: a relay that misbehaves at one process leaves the other one, too', async () => {
        expect(foreign.connections).toBeGreaterThan(1);
        for (let count = 0; count < 20; count += 1) {
          const stream = await open(first);
          await stream.write(Uint8Array.of(0x81, 0x00));
          await stream.readFrame().catch(() => {});
        }
        await vi.waitFor(() => expect(foreign.connections).toBe(0), patience);
        expect(metric(second, 'peers_dropped', { reason: 'other_process' })).toBeGreaterThan(0);
        expect([isConnected(first), isConnected(second)]).toEqual([true, true]);
      });
    });
  },
);
