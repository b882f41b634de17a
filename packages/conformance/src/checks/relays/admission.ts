/** Which relays are admitted (07 §A8, §A9, §B4, §B5). */
import { randomBytes } from 'node:crypto';
import { ed25519Identity, PeerError, type PeerIdentity } from '@posthouse/peer';
import { formatPeerId } from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { relayTime, untilRelayTime } from '../../fixtures/relay-info.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { payloadWith } from '../../seat/raw-handshake.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import { relayChecksOf, requireRegistryRefresh } from './common.ts';
import { rebind } from './rebinding.ts';

const admission = relayChecksOf('peer.admission');

/** Performs a handshake with a descriptor; returns whether the relay admits it. */
async function isAdmitted(
  seat: RelaySeat,
  descriptor: JsonObject,
  identity?: PeerIdentity,
): Promise<boolean> {
  const payload = payloadWith(JSON.stringify(descriptor));
  return (await seat.handshake(payload, identity)).isAdmitted;
}

/** Seconds in which a relay ends a connection after it has seen that it must. */
const endTime = 3;

admission.check(
  'listed',
  {
    source: '07 §B4',
    title: 'admits an unknown relay that the registry lists, by handshake alone',
  },
  async (context) => {
    const seat = await context.seat();
    await seat.connect();
  },
);

/** Members of valid descriptors, in unusual forms. */
const valid: Readonly<Record<string, (seat: RelaySeat) => JsonObject>> = {
  'unknown-members': () => ({ future: { deep: [1] } }),
  'unknown-capability': () => ({ capabilities: ['future.v9'] }),
  'other-transports': (seat) => ({
    endpoints: [
      '/ip4/192.0.2.1/udp/4201/quic-v1',
      seat.peerAddress,
      seat.endpoint,
      'gopher://relay.example',
    ],
  }),
  'several-addresses': (seat) => ({
    endpoints: [seat.endpoint, seat.peerAddress, seat.peerAddress.replace(/\/tcp\/\d+/, '/tcp/1')],
  }),
};

for (const [word, members] of Object.entries(valid)) {
  admission.check(
    `descriptor-with-${word}`,
    { source: '07 §A8', title: `admits a relay whose descriptor has ${word}` },
    async (context) => {
      const seat = await context.seat();
      const descriptor = await seat.descriptor(members(seat));
      seat.served = JSON.stringify(descriptor);
      await seat.connect();
    },
  );
}

type Fault = (seat: RelaySeat) => JsonObject | Promise<JsonObject>;

const otherPeer = (seat: RelaySeat) =>
  seat.peerAddress.replace(/[^/]+$/, formatPeerId(ed25519Identity(randomBytes(32)).peerId));

/** Descriptors with one fault each; all are signed by the relay but for the first. */
const faults: Readonly<Record<string, Fault>> = {
  'signature-altered': async (seat) => {
    const descriptor = await seat.descriptor();
    return { ...descriptor, relay_signature: tampered(String(descriptor.relay_signature)) };
  },
  'altered-after-signing': async (seat) => ({ ...(await seat.descriptor()), note: 'added' }),
  expired: (seat) => seat.descriptor({ expires_at: unixSeconds() - 1 }),
  'another-type': (seat) => seat.descriptor({ $type: 'svc.relay.other' }),
  'no-https-address': (seat) => seat.descriptor({ endpoints: [seat.peerAddress] }),
  'no-address-for-relays': (seat) => seat.descriptor({ endpoints: [seat.endpoint] }),
  'malformed-https-address': (seat) =>
    seat.descriptor({ endpoints: [seat.endpoint, seat.peerAddress, 'https://a.example/?'] }),
  'malformed-wss-address': (seat) =>
    seat.descriptor({ endpoints: [seat.endpoint, seat.peerAddress, 'wss://a.example/#'] }),
  'address-without-peer-id': (seat) =>
    seat.descriptor({ endpoints: [seat.endpoint, seat.peerAddress, '/ip4/192.0.2.1/tcp/1'] }),
  'repeated-address': (seat) =>
    seat.descriptor({ endpoints: [seat.endpoint, seat.endpoint, seat.peerAddress] }),
  'empty-address': (seat) => seat.descriptor({ endpoints: [seat.endpoint, seat.peerAddress, ''] }),
  'two-peer-ids': (seat) =>
    seat.descriptor({ endpoints: [seat.endpoint, seat.peerAddress, otherPeer(seat)] }),
  'another-peer-id': (seat) => seat.descriptor({ endpoints: [seat.endpoint, otherPeer(seat)] }),
  'too-many-capabilities': (seat) =>
    seat.descriptor({ capabilities: Array.from({ length: 65 }, (_, index) => `c${index}`) }),
  'repeated-capability': (seat) => seat.descriptor({ capabilities: ['a', 'a'] }),
  'long-capability': (seat) => seat.descriptor({ capabilities: ['c'.repeat(129)] }),
  'relay-id-in-upper-case': (seat) =>
    seat.descriptor({ relay_id: `0x${seat.relayId.slice(2).toUpperCase()}` }),
  'null-member': (seat) => seat.descriptor({ future: null }),
};

for (const [word, fault] of Object.entries(faults)) {
  admission.check(
    `refused-${word}`,
    { source: '07 §A9, §B4', title: `refuses a listed relay whose descriptor has ${word}` },
    async (context) => {
      const seat = await context.seat();
      await seat.expectAdmitted();
      const admitted = await isAdmitted(seat, await fault(seat));
      assertConforms(!admitted, `a descriptor with ${word} admits no relay`);
    },
  );
}

admission.check(
  'refused-key-of-another-relay',
  { source: '07 §A9', title: 'refuses a descriptor whose public_key does not derive relay_id' },
  async (context) => {
    const [seat, other] = [await context.seat(), await context.seat()];
    await seat.expectAdmitted();
    const descriptor = await other.descriptor({
      relay_id: seat.relayId,
      endpoints: [seat.endpoint, seat.peerAddress],
    });
    assertConforms(!(await isAdmitted(seat, descriptor)), 'the key must fit the ID');
  },
);

admission.check(
  'refused-descriptor-of-another-relay',
  { source: '07 §B4', title: 'refuses a peer that shows the descriptor of another relay' },
  async (context) => {
    const [seat, other] = [await context.seat(), await context.seat()];
    await seat.expectAdmitted();
    await other.expectAdmitted();
    const descriptor = await other.descriptor();
    assertConforms(
      !(await isAdmitted(seat, descriptor)),
      'the Peer ID of the handshake must be the one of the descriptor',
    );
  },
);

for (const status of ['unlisted', 'disabled', 'suspended'] as const) {
  admission.check(
    `refused-${status}`,
    { source: '07 §B4, §B5', title: `refuses a relay that is ${status} in the registry` },
    async (context) => {
      const seat = await context.seat({ status });
      const descriptor = await seat.descriptor();
      // A relay may refuse because it reads the registry for few strangers at once: once more when
      // it has admitted a stranger that is listed.
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const admitted = await isAdmitted(seat, descriptor);
        assertConforms(!admitted, `a relay that is ${status} is not admitted`);
        await (await context.seat()).expectAdmitted();
      }
    },
  );
}

admission.check(
  'rebinding',
  { source: '07 §B5', title: 'replaces the Peer ID of a relay: it never serves two at once' },
  async (context) => {
    const seat = await context.seat();
    const connection = await seat.connect();
    await rebind(seat);
    assertConforms(
      await connection.isCutOff({ seconds: endTime }),
      'the connection with the old Peer ID is served no more',
    );
  },
);

admission.check(
  'two-relays-one-peer-id',
  { source: '07 §B5', title: 'never holds two relays with one Peer ID' },
  async (context) => {
    const [first, second] = [await context.seat(), await context.seat()];
    const connection = await first.connect();
    await second.connect();
    const shared = await second.descriptor({
      endpoints: [second.endpoint, first.peerAddress],
    });
    second.served = JSON.stringify(shared);
    if (!(await isAdmitted(second, shared, first.identity))) return;
    assertConforms(
      await connection.isCutOff({ seconds: endTime }),
      'of two relays with one Peer ID at most one is admitted',
    );
  },
);

for (const status of ['disabled', 'suspended', 'unlisted'] as const) {
  admission.check(
    `loses-${status}`,
    { source: '07 §B5', title: `serves a relay no more that becomes ${status}` },
    async (context) => {
      const registryRefresh = requireRegistryRefresh(context);
      const seat = await context.seat();
      const connection = await seat.connect();
      if (status === 'unlisted') await seat.unlist();
      else await seat.list(status);
      assertConforms(
        await connection.isCutOff({ seconds: 2 * registryRefresh + 3 }),
        `a relay that becomes ${status} is served no more`,
      );
      const again = await seat.dial().then(
        () => true,
        (error: unknown) => {
          if (error instanceof PeerError) return false;
          throw error;
        },
      );
      assertConforms(!again, `a relay that became ${status} is not admitted again`);
    },
  );
}

admission.check(
  'loses-expired-descriptor',
  { source: '07 §B5', title: 'serves a relay no more whose descriptor has expired' },
  async (context) => {
    const seat = await context.seat();
    const expiresAt = (await relayTime(context)) + 3;
    seat.served = JSON.stringify(await seat.descriptor({ expires_at: expiresAt }));
    const connection = await seat.connect();
    await untilRelayTime(context, expiresAt);
    assertConforms(
      await connection.isCutOff({ seconds: endTime }),
      'a relay with an expired descriptor is served no more',
    );
  },
);

export const admissionChecks = admission.list;
