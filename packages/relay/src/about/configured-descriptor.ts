import type { Capability, Network } from '@posthouse/protocol';
import { peerAddress } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { Clock } from '../context.ts';
import type { SigningIdentity } from '../keys/identity.ts';
import { DescriptorSource } from './index.ts';

/** Makes the descriptor source of a configured relay from its addresses, modules and keys. */
export function configuredDescriptor(
  config: RelayConfig,
  parts: {
    readonly network: Network;
    readonly identity: SigningIdentity;
    readonly clock: Pick<Clock, 'now'>;
    readonly addresses: PublicAddresses;
  },
): DescriptorSource {
  const { network, identity, clock, addresses } = parts;
  return new DescriptorSource({
    network,
    signer: identity.signer,
    clock,
    endpoints: () => [
      ...addresses.https,
      ...addresses.wss,
      peerAddress(config, identity.peerId, {
        https: addresses.https[0] as string,
        port: addresses.peerPort,
      }),
    ],
    capabilities: [...hostedCapabilities(config), ...ownCapabilities(config)],
    lifetime: config.descriptorLifetime,
  });
}

/**
 * Lists what a configured relay declares outside of the protocol: attachments (decision 0032), and
 * which new accounts it takes, if not all (02 §9.4).
 */
function ownCapabilities({
  blobs,
  registration,
}: Pick<RelayConfig, 'blobs' | 'registration'>): string[] {
  return [
    ...(blobs.folder === '' ? [] : ['posthouse.blobs.v1']),
    ...(registration === 'open' ? [] : [`posthouse.registration.${registration}`]),
  ];
}

/** Lists the optional modules that a configured relay hosts. */
export function hostedCapabilities({ host }: Pick<RelayConfig, 'host'>): Capability[] {
  return [
    ...(host.groups ? (['group.host.v1'] as const) : []),
    ...(host.channels ? (['channel.host.v1'] as const) : []),
  ];
}
