/** Device states, routes and profiles of a backup, with the signatures of their accounts. */
import {
  checkRoute,
  type DeviceCertificate,
  type Network,
  routeDraftSignatures,
  verifyDeviceCertificate,
  verifyDeviceState,
  verifyProfile,
} from '@posthouse/protocol';
import { verifySignatures } from '@posthouse/protocol/crypto';
import { parseJson } from '@posthouse/protocol/json';
import type { RowCheck } from './row-check.ts';

/** Returns the checks of what accounts sign. */
export function accountChecks(network: Network): RowCheck[] {
  return [
    {
      kind: 'device states',
      table: 'device_states',
      verify: async (row) => verifyDeviceState(network, parseJson(String(row.state))),
    },
    {
      kind: 'routes',
      table: 'account_routes',
      verify: async (row) => {
        // Empty once the route has ended, or its account was deleted: only the revision stays.
        if (row.route === '') return;
        const route = parseJson(String(row.route));
        checkRoute(network, route);
        verifySignatures(network.primitives, routeDraftSignatures(network, route), 'route');
      },
    },
    {
      kind: 'profiles',
      table: 'profiles',
      verify: async (row) => {
        const certificate = parseJson(String(row.certificate)) as unknown as DeviceCertificate;
        verifyDeviceCertificate(network, certificate);
        verifyProfile(network, parseJson(String(row.profile)), certificate);
      },
    },
  ];
}
