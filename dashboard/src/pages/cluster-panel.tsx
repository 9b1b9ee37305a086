import { useQuery } from "@tanstack/react-query";
import type { Cluster } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Ago, Mark } from "../parts/marks.tsx";
import { Facts, Loaded, Panel } from "../parts/page.tsx";

export function ClusterPanel() {
  const cluster = useQuery(queries.cluster());
  return (
    <Panel title="Dispatch and leader">
      <Loaded query={cluster}>{(data) => <ClusterFacts cluster={data} />}</Loaded>
    </Panel>
  );
}

const dispatchWords = {
  brokered: "through Redis, PostgreSQL decides",
  direct: "from PostgreSQL",
} as const;

function ClusterFacts({ cluster }: { cluster: Cluster }) {
  const { leader, dispatch, redis, postgres } = cluster;
  const isFallback = dispatch === "direct" && redis === "unreachable";
  return (
    <Facts
      facts={[
        [
          "Dispatch",
          <span key="dispatch">
            <Mark tone={isFallback ? "warn" : "good"}>{dispatch}</Mark>{" "}
            <span className="soft">
              {isFallback ? "fallen back: Redis does not answer" : dispatchWords[dispatch]}
            </span>
          </span>,
        ],
        [
          "Leader",
          <span key="leader">
            <Mark tone={leader.in_office ? "good" : "warn"}>
              {leader.in_office ? "in office" : "vacant"}
            </Mark>{" "}
            <span className="soft">
              {leader.holder ?? "nobody"}, term {leader.term}
            </span>
          </span>,
        ],
        ["Elected", <Ago key="elected" at={leader.elected_at} />],
        ["Redis", redis],
        ["PostgreSQL", postgres.version],
      ]}
    />
  );
}
