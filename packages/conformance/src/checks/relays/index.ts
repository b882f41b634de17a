import { admissionChecks } from './admission.ts';
import { deliverChecks } from './deliver.ts';
import { dhtAnswerChecks } from './dht-answers.ts';
import { dhtCandidateChecks } from './dht-candidates.ts';
import { dhtCrowdChecks } from './dht-crowd.ts';
import { dhtLookupChecks } from './dht-lookup.ts';
import { dhtMessageChecks } from './dht-messages.ts';
import { dhtPeerChecks } from './dht-peers.ts';
import { dhtPublicationChecks } from './dht-publication.ts';
import { dhtRepublicationChecks } from './dht-republication.ts';
import { dhtRouteChecks } from './dht-routes.ts';
import { dialChecks } from './dials.ts';
import { envelopeChecks } from './envelopes.ts';
import { frameChecks } from './frames.ts';
import { handshakeChecks } from './handshake.ts';
import { homeQueryChecks } from './home-queries.ts';
import { relayLimitChecks } from './limits.ts';
import { messagePeriodChecks } from './message-periods.ts';
import { restartChecks } from './restarts.ts';
import { sourceDeliverChecks } from './source-deliver.ts';
import { sourceStatusChecks } from './source-device-status.ts';
import { sourceQueryChecks } from './source-queries.ts';

/** The checks for which the kit is another relay (07). */
export const relayToRelayChecks = [
  ...handshakeChecks,
  ...admissionChecks,
  ...dialChecks,
  ...frameChecks,
  ...dhtMessageChecks,
  ...dhtRouteChecks,
  ...dhtPeerChecks,
  ...dhtLookupChecks,
  ...dhtAnswerChecks,
  ...dhtPublicationChecks,
  ...dhtRepublicationChecks,
  ...envelopeChecks,
  ...homeQueryChecks,
  ...deliverChecks,
  ...relayLimitChecks,
  ...sourceStatusChecks,
  ...sourceQueryChecks,
  ...sourceDeliverChecks,
  ...messagePeriodChecks,
  ...restartChecks,
  ...dhtCrowdChecks,
  ...dhtCandidateChecks,
];
