/** How simulated relays reach each other: real requests and answers, over the simulated network. */
import type { FinalRoute } from '@posthouse/protocol';
import {
  encodeRelayNotification,
  encodeRelayRequest,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { observeRoute, readUsableRoute } from '../../../src/accounts/index.ts';
import type {
  RelayAnswer,
  RelayClient,
  RelayContext,
  RouteDirectory,
} from '../../../src/context.ts';
import { encodeResult } from '../../../src/dispatch/encode.ts';
import type { RelayReply } from '../../../src/dispatch/relay-dispatcher.ts';
import type { PeerRelay } from '../../../src/dispatch/relay-handler.ts';
import { type NetworkNode, NoAnswer, type SimulatedNetwork } from '../machine/network.ts';

/** A relay as the others reach it. */
export interface PeerNode extends NetworkNode {
  readonly relayId: string;
  readonly context: RelayContext;
  /** Answers a frame; runs in the relay's process. */
  answerRelay(text: string, from: PeerRelay): Promise<RelayReply>;
}

/** What a relay uses of the others. */
export interface Peers {
  readonly relayClient: RelayClient;
  readonly routeDirectory: RouteDirectory;
}

/** Connects a relay with all others. `relays` may be filled later. */
export function peersOf(
  self: PeerNode,
  relays: readonly PeerNode[],
  network: SimulatedNetwork,
): Peers {
  let id = 0;
  const find = (relayId: string) => relays.find((relay) => relay.relayId === relayId);
  const others = () => relays.filter((relay) => relay !== self);
  return {
    relayClient: {
      async call(to, method, params) {
        const target = find(to);
        if (target === undefined) return { kind: 'unreachable' };
        id += 1;
        const request = id;
        const object = parseJson(encodeResult(params)) as JsonObject;
        const text = encodeRelayRequest({ id: request, method, params: object });
        return await answerOf(async () => {
          const reply = await network.request(self, target, () => target.answerRelay(text, self));
          if (reply.kind !== 'answer') return { kind: 'unknown' };
          return readRelayResponse(reply.text, request);
        });
      },
      async notify(to, name, params) {
        const target = find(to);
        if (target?.process === undefined || network.isCut(self, target)) return false;
        const text = encodeRelayNotification(name, params);
        network.send(self, target, async () => void (await target.answerRelay(text, self)));
        return true;
      },
      pausedUntil: () => undefined,
      callsAtOnce: () => 128,
    },
    routeDirectory: {
      get hasRelays() {
        return relays.length > 1;
      },
      get isAlone() {
        return relays.length <= 1;
      },
      areAllAway: false,
      async resolveRemote(account, only) {
        const asked = others().filter(({ relayId }) => relayId === (only ?? relayId));
        const missed: string[] = [];
        const found = await Promise.all(
          asked.map(async (relay) => {
            try {
              return await network.request(self, relay, () => knownRoutes(relay, account));
            } catch {
              missed.push(relay.relayId);
              return [];
            }
          }),
        );
        const routes = found.flat();
        const claimed = asked
          .filter(({ relayId }, index) => found[index]?.some((route) => route.relay_id === relayId))
          .map(({ relayId }) => relayId);
        const nearest = asked.map(({ relayId }) => relayId).filter((id) => !missed.includes(id));
        return { routes, unverified: [], missed, claimed, nearest };
      },
      async replicate(route, leaving) {
        let reachedLeaving = leaving === undefined;
        await Promise.all(
          others().map(async (relay) => {
            const store = async () => void (await observeRoute(relay.context, route));
            const isStored = await network.request(self, relay, store).then(
              () => true,
              () => false,
            );
            if (isStored && relay.relayId === leaving) reachedLeaving = true;
          }),
        );
        return { isEnough: true, reachedLeaving };
      },
    },
  };
}

async function answerOf(request: () => Promise<RelayAnswer>): Promise<RelayAnswer> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof NoAnswer) return { kind: error.isUnsent ? 'unreachable' : 'unknown' };
    throw error;
  }
}

/** What a relay answers to GET_VALUE: its usable route of the account. */
async function knownRoutes({ context }: PeerNode, account: string): Promise<FinalRoute[]> {
  const { clock, storage } = context;
  const route = await storage.read((tx) => readUsableRoute(tx, account, clock.now()));
  return route === undefined ? [] : [parseJson(route) as unknown as FinalRoute];
}
