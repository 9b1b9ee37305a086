import { Link } from "@tanstack/react-router";
import { Page } from "../parts/page.tsx";

export const NotFound = () => (
  <Page title="There is no such page">
    <p>
      The address leads nowhere. <Link to="/">The overview</Link> leads everywhere else.
    </p>
  </Page>
);
